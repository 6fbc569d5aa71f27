#include "contexts/context.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "contexts/capabilities.h"
#include "contexts/clone_init.h"
#include "wire/channel.h"

namespace contexts {

using base::Result;

namespace {

// Newer than Debian 12's headers; older kernels refuse them and /proc is asked instead.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5, include/uapi/asm-generic/socket.h
#endif
constexpr unsigned long kPidfdGetPidNamespace = _IO(0xFF, 5);  // Linux 6.11, linux/pidfd.h

}  // namespace

Result<std::unique_ptr<Context>> Context::create(ContextSpec spec, const Host& host) {
  if (auto valid = validate(spec); !valid) return tl::unexpected<base::Error>(valid.error());
  std::unique_ptr<Context> context(new Context(std::move(spec)));
  auto done = context->set_up(host);
  if (done) done = context->start_init(host);
  if (done) done = context->await_ready();
  if (!done) {
    done.error().operation = "create context '" + context->name() + "': " + done.error().operation;
    return tl::unexpected<base::Error>(done.error());
  }
  return context;
}

/// In tier `uids` the user id is what separates contexts; the platform's programs keep their
/// callers'.
Result<void> Context::choose_user() {
  if (tier_ != Tier::uids || spec_.is_platform || spec_.user_ids) return {};
  auto lease = UidLease::take(name());
  if (!lease) return tl::unexpected<base::Error>(lease.error());
  lease_ = std::move(*lease);
  return {};
}

/// `strict`: ids of its own. Agents' walls are made by who is root of all mounts, so not there.
void Context::choose_ids() {
  constexpr const char* kLack = "its user ids are the machine's, uid 0 in it owns what uid 0 owns";
  if (!spec_.child_context.empty() || spec_.is_platform) return add_lack(kLack);
  if (auto lease = UidLease::take(name())) {
    id_lease_ = std::move(*lease);
  } else {
    add_lack(std::string(kLack) + ": " + lease.error().message());
  }
}

std::optional<UserIds> Context::own_ids() const {
  if (spec_.user_ids) return spec_.user_ids;
  if (!lease_) return std::nullopt;
  return UserIds{lease_.uid(), lease_.uid()};
}

Result<void> Context::set_up(const Host& host) {
  tier_ = spec_.isolation == Isolation::none ? Tier::none : host.tier;
  if (auto chosen = choose_user(); !chosen) return chosen;
  if (auto settled = settle_limits(); !settled) return settled;
  if (host.marks_sockets && tier_ != Tier::none) mark_sockets();
  airlock_folder_ = is_isolated(tier_) ? host.runtime.root() : host.runtime.view(name());
  const bool with_router = !spec_.child_context.empty();
  if (auto made = host.runtime.make_view(name(), host.programs, with_router); !made) return made;
  if (wants_farm()) {
    auto made = host.runtime.make_preload_file(name());
    if (!made) return tl::unexpected<base::Error>(made.error());
    has_preload_file_ = *made;
  }
  if (wants_overlay(host)) {
    if (tier_ != Tier::namespaces) {
      return base::failure("rootfs 'overlay'", ENOTSUP,
                           "it needs the tier namespaces; 'rootfs: shared' does without");
    }
    if (auto made = host.runtime.make_upper(name()); !made) return made;
    has_own_rootfs_ = true;
  }
  if (spec_.isolation == Isolation::strict) {
    if (tier_ != Tier::namespaces) {
      return base::failure("isolation 'strict'", ENOTSUP, "it needs the tier namespaces");
    }
    choose_ids();
  }
  if (spec_.home.empty() || tier_ == Tier::none) return {};
  struct stat owner {};
  if (::stat(spec_.home.c_str(), &owner) != 0) return base::os_error("HOME " + spec_.home);
  if (is_isolated(tier_)) return host.runtime.make_home(name(), owner.st_uid, owner.st_gid);
  own_home_ = host.runtime.home(name());
  const auto user = own_ids().value_or(UserIds{owner.st_uid, owner.st_gid});
  return host.runtime.make_home(name(), user.uid, user.gid);
}

bool Context::wants_farm() const {
  const bool is_asked_for = !spec_.enforce || *spec_.enforce == Mechanism::farm;
  return is_isolated(tier_) && !spec_.child_context.empty() && is_asked_for;
}

bool Context::wants_overlay(const Host& host) const {
  if (spec_.is_platform || spec_.is_control || tier_ == Tier::none) return false;
  if (spec_.rootfs != Rootfs::automatic) return spec_.rootfs == Rootfs::overlay;
  return host.own_rootfs && tier_ == Tier::namespaces && spec_.child_context.empty() &&
         host.runtime.has_disk_for_uppers();
}

void Context::describe_hardening(const Host& host, wire::Setup& setup) const {
  if (has_own_rootfs_) {
    setup.upper_dir = host.runtime.upper(name());
    setup.upper_in_memory = spec_.rootfs == Rootfs::overlay;
    for (const auto& folder : host.bin_folders) setup.watched.add(folder);
  }
  const bool is_strict = spec_.isolation == Isolation::strict && !spec_.is_platform;
  setup.private_tmp = is_strict;
  setup.no_new_privs = is_strict;
  const bool is_filtered = is_isolated(tier_) && !spec_.is_platform;
  // Agents' walls are built of mounts.
  const bool is_all = is_strict && spec_.child_context.empty();
  setup.refused_calls = !is_filtered ? 0 : is_all ? 2 : 1;
  if (!is_strict) {
    setup.same.add("/tmp");
    setup.same.add("/var/tmp");
  }
  setup.same.add(spec_.cwd);
  setup.same.add(host.runtime.root());
  if (!spec_.home.empty()) setup.same.add(spec_.home);
  for (const auto* paths : {&spec_.share, &spec_.protect}) {
    for (const auto& path : *paths) setup.same.add(path);
  }
}

wire::Setup Context::describe(const Host& host) const {
  wire::Setup setup;
  setup.tier = static_cast<std::uint8_t>(tier_);
  setup.name = name();
  setup.view_dir = host.runtime.view(name());
  setup.runtime_dir = host.runtime.root();
  setup.root_dir = host.runtime.staging();
  if (!spec_.home.empty() && tier_ != Tier::none) setup.private_home = host.runtime.home(name());
  setup.home = spec_.home;
  for (const auto& path : spec_.share) setup.share.add(path);
  for (const auto& path : spec_.hide) setup.hide.add(path);
  if (is_isolated(tier_)) setup.hide.add(host.runtime.state_folder());
  for (const auto& path : spec_.protect) setup.protect.add(path);
  const bool keeps_all = spec_.is_platform || tier_ == Tier::none;
  setup.capabilities = keeps_all ? all_capabilities() : developer_capabilities();
  setup.own_devpts = !spec_.is_platform;
  setup.protect_kernel_knobs = !spec_.is_platform;
  setup.is_platform = spec_.is_platform;
  if (lease_) setup.own_uid = lease_.uid();
  setup.with_farm = wants_farm();
  setup.with_route = !spec_.child_context.empty();
  setup.pid_max = pid_max_;
  setup.tmpfs_bytes = spec_.limits.tmpfs;
  describe_hardening(host, setup);
  setup.reports_jobs = host.reports_jobs;
  if (id_lease_) setup.first_id = id_lease_.first_of_block();
  return setup;
}

Result<void> Context::start_init(const Host& host) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  channel_.reset(ends[0]);
  const base::UniqueFd init_end(ends[1]);
  auto program = base::open_file(host.programs + "/airlock-init", O_PATH);
  if (!program) return tl::unexpected<base::Error>(program.error());
  auto init = clone_init(tier_, program->borrow(), init_end.borrow());
  if (!init) return tl::unexpected<base::Error>(init.error());
  init_pid_ = init->pid;
  init_pidfd_ = std::move(init->pidfd);
  // It waits for its Setup, so nothing of the context is outside of them.
  if (auto added = cgroups_.add(init_pid_); !added) return added;
  return wire::send_datagram(channel_.borrow(), wire::MessageType::setup,
                             wire::encode(describe(host)));
}

void Context::take_farm(wire::Frame& frame, const wire::Ready& ready) {
  farm_error_ = ready.farm_error;
  memfd_error_ = ready.memfd_error;
  if (frame.fds.size() > 1) farm_root_ = std::move(frame.fds[1]);  // the first: see await_ready()
  if (farm_root_ || !farm_error_.empty()) return;
  farm_error_ = is_isolated(tier_) ? "'enforce' of this context asks for another mechanism"
                                   : "needs mount namespaces: the tiers namespaces and userns";
}

namespace {

/// Where in the kernel a process is, for who has to find out why it does not go on (proc(5)).
std::string whereabouts(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  const auto stat = base::read_file(process + "/stat");
  const auto function = base::read_file(process + "/wchan");
  const auto end_of_name = stat ? stat->rfind(") ") : std::string::npos;
  if (end_of_name == std::string::npos) return "it is gone";
  return "it is in state " + stat->substr(end_of_name + 2, 1) + ", in the kernel's " +
         (function && *function != "0" ? *function : "unknown function");
}

}  // namespace

Result<wire::Frame> Context::await_frame(wire::MessageType type) {
  pollfd channel{channel_.borrow(), POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&channel, 1, kReadyDeadlineMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return base::failure("wait for its init", ETIMEDOUT, whereabouts(init_pid()));
  auto frame = wire::receive_datagram(channel_.borrow());
  if (!frame) return base::failure("its init ended early", frame.error().code);
  if (!*frame) return base::failure("its init said nothing", EPROTO);
  if ((*frame)->type != type) return base::failure("wait for its init", EPROTO);
  return std::move(**frame);
}

Result<void> Context::await_walls() {
  if (spec_.child_context.empty()) return {};
  auto frame = await_frame(wire::MessageType::walls);
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  auto answer = wire::decode<wire::Walls>(frame->payload);
  if (!answer) return tl::unexpected<base::Error>(answer.error());
  binfmt_error_ = answer->binfmt_error;
  ptrace_error_ = answer->ptrace_error;
  return {};
}

Result<void> Context::await_ready() {
  auto frame = await_frame(wire::MessageType::ready);
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  auto answer = wire::decode<wire::Ready>(frame->payload);
  if (!answer) return tl::unexpected<base::Error>(answer.error());
  // The step's text names its errno already.
  if (answer->error != 0) return base::failure(answer->step, 0);
  for (auto& lack : answer->lacks.strings()) lacks_.push_back(std::move(lack));
  has_own_rootfs_ = has_own_rootfs_ && !answer->shares_root;
  take_farm(*frame, *answer);
  if (!is_isolated(tier_)) return base::set_nonblocking(channel_.borrow(), true);
  // From itself: to look into the non-dumpable init takes CAP_SYS_PTRACE, which containers lack.
  if (frame->fds.empty()) return base::failure("wait for its init", EBADMSG);
  pid_namespace_fd_ = std::move(frame->fds.front());
  struct stat ns {};
  if (::fstat(pid_namespace_fd_.borrow(), &ns) != 0) return base::os_error("fstat a namespace");
  pid_namespace_ = ns.st_ino;
  return base::set_nonblocking(channel_.borrow(), true);
}

namespace {

/// Inode of the PID namespace of the process that connected `socket`; 0 = unknown: it has ended, or
/// is another user's and this process has no CAP_SYS_PTRACE.
ino_t peer_pid_namespace(int socket, pid_t pid) {
  struct stat ns {};
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) {
    const base::UniqueFd pidfd(fd);
    const base::UniqueFd found(::ioctl(pidfd.borrow(), kPidfdGetPidNamespace, 0));
    if (found && ::fstat(found.borrow(), &ns) == 0) return ns.st_ino;
  }
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/pid";
  return ::stat(path.c_str(), &ns) == 0 ? ns.st_ino : 0;
}

}  // namespace

namespace {

/// proc(5); 0 if the process is gone.
pid_t parent_of(pid_t pid) {
  const auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end == std::string::npos ? 0 : std::atoi(stat->c_str() + name_end + 4);
}

/// True if `ancestor` started `pid`, however indirectly. It is a subreaper (prctl(2)), so whoever
/// comes from it stays below it.
bool is_descendant(pid_t pid, pid_t ancestor) {
  constexpr int kDeepest = 4096;
  for (int depth = 0; pid > 1 && depth < kDeepest; ++depth) {
    if (pid == ancestor) return true;
    pid = parent_of(pid);
  }
  return false;
}

}  // namespace

bool is_peer_alive(int socket) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) != 0) {
    return errno == ENOPROTOOPT;  // before Linux 6.5
  }
  const base::UniqueFd pidfd(fd);
  pollfd end{fd, POLLIN, 0};
  return ::poll(&end, 1, 0) == 0;
}

bool Context::is_ancestor_of(pid_t pid) const { return is_descendant(pid, init_pid_); }

bool Context::contains(int socket, pid_t pid) const {
  if (tier_ == Tier::none) return true;
  const ino_t found = is_isolated(tier_) ? peer_pid_namespace(socket, pid) : 0;
  const bool is_inside = found != 0 ? found == pid_namespace_ : is_descendant(pid, init_pid_);
  // In this order: a pid that is reused belongs to somebody who came after the end.
  return is_inside && is_peer_alive(socket);
}

namespace {

/// Processes still in PID namespace `inode`; zombies are gone for everybody but their reaper.
int count_members(ino_t inode) {
  int members = 0;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return 0;
  while (const dirent* entry = ::readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    struct stat ns {};
    const std::string path = std::string("/proc/") + entry->d_name + "/ns/pid";
    members += ::stat(path.c_str(), &ns) == 0 && ns.st_ino == inode;
  }
  ::closedir(proc);
  return members;
}

int count_descendants(pid_t ancestor) {
  int count = 0;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return 0;
  while (const dirent* entry = ::readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    count += pid > 1 && pid != ancestor && is_descendant(pid, ancestor);
  }
  ::closedir(proc);
  return count;
}

constexpr int kDestroyDeadlineMs = 5'000;

bool await_end(int pidfd, int deadline_ms) {
  pollfd end{pidfd, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&end, 1, deadline_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace

int Context::count_survivors() const {
  if (is_isolated(tier_)) return count_members(pid_namespace_);
  if (lease_) return count_processes_of(lease_.uid());
  return count_descendants(init_pid_);
}

void Context::begin_destroy() {
  if (init_pid_ <= 0) return;
  // The death of PID 1 kills the namespace, and the kernel lets it be reaped only when all the
  // others are gone (pid_namespaces(7)). Without a namespace the init kills its members and ends
  // when they are gone; it alone knows them.
  const int signal = is_isolated(tier_) ? SIGKILL : SIGTERM;
  ::syscall(SYS_pidfd_send_signal, init_pidfd_.borrow(), signal, 0, 0);
  channel_.reset();
}

Destroyed Context::destroy() {
  Destroyed result;
  if (init_pid_ <= 0) return result;
  begin_destroy();
  const bool has_ended = await_end(init_pidfd_.borrow(), kDestroyDeadlineMs);
  if (!has_ended) {
    result.survivors = count_survivors();
    ::syscall(SYS_pidfd_send_signal, init_pidfd_.borrow(), SIGKILL, 0, 0);
    await_end(init_pidfd_.borrow(), kDestroyDeadlineMs);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(init_pid_), &ended, WEXITED | WNOHANG);
  if (is_isolated(tier_) || lease_) result.survivors = count_survivors();
  init_pid_ = -1;
  cgroups_ = {};
  return result;
}

Context::~Context() { destroy(); }

}  // namespace contexts
