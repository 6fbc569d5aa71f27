#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/cgroups.h"
#include "contexts/runtime_dir.h"
#include "contexts/spec.h"
#include "contexts/tier.h"
#include "contexts/uid_lease.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace contexts {

/// Where a daemon finds what contexts are made of.
struct Host {
  const RuntimeDir& runtime;
  /// Folder of airlock-init, airlock-stub and libairlock-preload.so.
  std::string programs;
  Tier tier = Tier::none;
  /// Inits tell of each job's end (JobEnded).
  bool reports_jobs = false;
  /// Where it can be, the sockets that a context makes are known as its own (Context::has_made).
  bool marks_sockets = false;
  /// What contexts with `rootfs: auto` get: system folders of their own, where that can be.
  bool own_rootfs = false;
  /// Where programs appear when something is installed.
  std::vector<std::string> bin_folders = {};
};

/// What an init did when it was asked to stop.
struct Destroyed {
  /// Processes of the context that are still there: 0 unless the kernel could not kill one in time.
  int survivors = 0;
};

/// One execution context: its init process and the channel to it. Destroying the object ends the
/// context and everything in it.
class Context {
 public:
  /// Starts the init and waits until the context stands: a few ms, at most kReadyDeadlineMs.
  /// Error::message() says which step failed and what is missing.
  static base::Result<std::unique_ptr<Context>> create(ContextSpec spec, const Host& host);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextSpec& spec() const { return spec_; }
  /// For settings that may change while the context lives (env, child_context).
  ContextSpec& spec() { return spec_; }
  const std::string& name() const { return spec_.name; }
  Tier tier() const { return tier_; }
  /// What the tier could not do on this machine, one line each.
  const std::vector<std::string>& lacks() const { return lacks_; }
  /// Whether its agents can have a shim farm: the root of its tmpfs, to be taken once, or else why
  /// there is none.
  base::UniqueFd take_farm_root() { return std::move(farm_root_); }
  const std::string& farm_error() const { return farm_error_; }
  /// Why programs can be made of a memfd here; empty if they cannot. Of contexts with a farm.
  const std::string& memfd_error() const { return memfd_error_; }
  /// Its agents can load the interposer by an own /etc/ld.so.preload,
  /// airlock_folder()/ld.so.preload.
  bool has_preload_file() const { return has_preload_file_; }
  /// Waits until the init of a context with a child_context has tried the two below, which it does
  /// while the caller does something else; at most kReadyDeadlineMs. Once, before the channel is
  /// used.
  base::Result<void> await_walls();
  /// Why this context's programs cannot have a binfmt_misc of their own; empty if they can.
  const std::string& binfmt_error() const { return binfmt_error_; }
  /// Why this context's programs cannot be traced; empty if they can.
  const std::string& ptrace_error() const { return ptrace_error_; }
  /// The init's pid in the daemon's PID namespace.
  pid_t init_pid() const { return init_pid_; }
  /// Readable (poll(2)) when the init has ended. Borrowed.
  int init_pidfd() const { return init_pidfd_.borrow(); }
  /// The SEQPACKET channel to the init. Borrowed, non-blocking.
  int channel() const { return channel_.borrow(); }
  /// Inode of the PID namespace, as /proc/PID/ns/pid shows it.
  ino_t pid_namespace() const { return pid_namespace_; }
  /// Folder in which this context's programs find stub, interposer and router socket.
  const std::string& airlock_folder() const { return airlock_folder_; }

  /// User and group that all its programs have in tier `uids`; none where they have their caller's.
  std::optional<UserIds> own_ids() const;
  /// The folder that programs get as HOME in tiers that cannot put one at the place of the
  /// platform's; else empty.
  const std::string& own_home() const { return own_home_; }
  /// What its programs change in the system's folders is not the platform's.
  bool has_own_rootfs() const { return has_own_rootfs_; }

  /// True if a socket with these marks was provably made by a program of this context: in its
  /// cgroup of version 2, or by a user id that nobody else has.
  bool has_made(std::uint64_t cgroup, unsigned uid) const;

  /// Its limits, each with what keeps it.
  const std::vector<KeptLimit>& kept_limits() const { return kept_limits_; }
  /// How often one that a cgroup keeps was hit; 0 for the others, which nobody counts.
  std::uint64_t limit_hits(const std::string& limit) const { return cgroups_.hits(limit); }
  /// What no program of this context may have more of.
  const std::vector<wire::Rlimit>& rlimit_caps() const { return rlimit_caps_; }

  /// One more line of lacks().
  void add_lack(std::string line) { lacks_.push_back(std::move(line)); }

  /// True if the process that connected `socket`, `pid` in the daemon's namespace, belongs to this
  /// context (asked of its pidfd, so a reused pid does not deceive). False once it has ended.
  /// Always true in tier `none`.
  bool contains(int socket, pid_t pid) const;

  /// True if `pid`, of the daemon's namespace, comes from this context's init. Once a process has
  /// ended this tells nothing of it: ask is_peer_alive() afterwards.
  bool is_ancestor_of(pid_t pid) const;

  /// Kills everything in the context and waits for it. Double-forked and setsid'ed processes are
  /// included: they cannot leave a PID namespace, a Landlock domain, or the descendants of the
  /// init.
  Destroyed destroy();

  /// Begins destroy() without waiting: whoever ends several begins them all first.
  void begin_destroy();

 private:
  explicit Context(ContextSpec spec) : spec_(std::move(spec)) {}
  base::Result<void> start_init(const Host& host);
  base::Result<void> set_up(const Host& host);
  base::Result<void> settle_limits();
  void mark_sockets();
  base::Result<void> keep_without_cgroup(const std::string& limit, std::uint64_t value);
  base::Result<wire::Frame> await_frame(wire::MessageType type);
  base::Result<void> await_ready();
  base::Result<void> choose_user();
  void choose_ids();
  int count_survivors() const;
  wire::Setup describe(const Host& host) const;
  bool wants_farm() const;
  bool wants_overlay(const Host& host) const;
  void describe_hardening(const Host& host, wire::Setup& setup) const;
  void take_farm(wire::Frame& frame, const wire::Ready& ready);

  ContextSpec spec_;
  Tier tier_ = Tier::none;
  std::vector<std::string> lacks_;
  std::string binfmt_error_;
  std::string ptrace_error_;
  std::string airlock_folder_;
  std::string own_home_;
  UidLease lease_;
  /// Of a block of ids that it has to itself.
  UidLease id_lease_;
  Cgroups cgroups_;
  std::vector<KeptLimit> kept_limits_;
  std::vector<wire::Rlimit> rlimit_caps_;
  /// Of its PID namespace; 0: the machine's.
  std::uint32_t pid_max_ = 0;
  base::UniqueFd farm_root_;
  std::string farm_error_;
  std::string memfd_error_;
  bool has_preload_file_ = false;
  bool has_own_rootfs_ = false;
  base::UniqueFd channel_;
  base::UniqueFd init_pidfd_;
  pid_t init_pid_ = -1;
  /// Held so that nobody else's namespace gets its inode while we compare with it.
  base::UniqueFd pid_namespace_fd_;
  ino_t pid_namespace_ = 0;
};

/// False if the process that connected `socket` is known to have ended (pidfd of SO_PEERPIDFD,
/// Linux 6.5; before that nothing is known and it counts as alive).
bool is_peer_alive(int socket);

/// Milliseconds. Not a measure of speed: under full load an init has needed more than ten seconds.
constexpr int kReadyDeadlineMs = 30'000;

}  // namespace contexts
