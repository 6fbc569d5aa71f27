#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/runtime_dir.h"
#include "contexts/spec.h"
#include "contexts/tier.h"
#include "wire/message.h"

namespace contexts {

/// Where a daemon finds what contexts are made of.
struct Host {
  const RuntimeDir& runtime;
  /// Folder of airlock-init, airlock-stub and libairlock-preload.so.
  std::string programs;
  Tier tier = Tier::none;
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

  /// True if the process that connected `socket`, `pid` in the daemon's namespace, belongs to this
  /// context (asked of its pidfd, so a reused pid does not deceive). False once it has ended.
  bool contains(int socket, pid_t pid) const;

  /// Kills everything in the context and waits for it. Double-forked and setsid'ed processes are
  /// included: they cannot leave a PID namespace.
  Destroyed destroy();

 private:
  explicit Context(ContextSpec spec) : spec_(std::move(spec)) {}
  base::Result<void> start_init(const Host& host);
  base::Result<void> set_up(const Host& host);
  base::Result<void> await_ready();
  wire::Setup describe(const Host& host) const;

  ContextSpec spec_;
  Tier tier_ = Tier::none;
  std::vector<std::string> lacks_;
  std::string airlock_folder_;
  base::UniqueFd channel_;
  base::UniqueFd init_pidfd_;
  pid_t init_pid_ = -1;
  /// Held so that nobody else's namespace gets its inode while we compare with it.
  base::UniqueFd pid_namespace_fd_;
  ino_t pid_namespace_ = 0;
};

constexpr int kReadyDeadlineMs = 10'000;

/// The strongest tier this process can have here, found by making a context in each, strongest
/// first. `reasons` gets a line for each tier that failed.
Tier probe_tier(const RuntimeDir& runtime, const std::string& programs,
                std::vector<std::string>& reasons);

/// Makes and destroys a context of `tier`. The error says what is missing.
base::Result<void> probe_one(Tier tier, const RuntimeDir& runtime, const std::string& programs);

}  // namespace contexts
