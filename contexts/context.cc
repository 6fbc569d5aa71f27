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

#include <cstdlib>

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

Result<void> Context::set_up(const Host& host) {
  tier_ = spec_.isolation == Isolation::none ? Tier::none : host.tier;
  airlock_folder_ = is_isolated(tier_) ? host.runtime.root() : host.runtime.view(name());
  const bool with_router = !spec_.child_context.empty();
  if (auto made = host.runtime.make_view(name(), host.programs, with_router); !made) return made;
  if (spec_.home.empty() || !is_isolated(tier_)) return {};
  struct stat owner {};
  if (::stat(spec_.home.c_str(), &owner) != 0) return base::os_error("HOME " + spec_.home);
  return host.runtime.make_home(name(), owner.st_uid, owner.st_gid);
}

wire::Setup Context::describe(const Host& host) const {
  wire::Setup setup;
  setup.tier = static_cast<std::uint8_t>(tier_);
  setup.name = name();
  setup.view_dir = host.runtime.view(name());
  setup.runtime_dir = host.runtime.root();
  setup.root_dir = host.runtime.staging();
  if (!spec_.home.empty()) setup.private_home = host.runtime.home(name());
  setup.home = spec_.home;
  for (const auto& path : spec_.share) setup.share.add(path);
  for (const auto& path : spec_.hide) setup.hide.add(path);
  const bool keeps_all = spec_.is_platform || tier_ == Tier::none;
  setup.capabilities = keeps_all ? all_capabilities() : developer_capabilities();
  setup.own_devpts = !spec_.is_platform;
  setup.protect_kernel_knobs = !spec_.is_platform;
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
  return wire::send_datagram(channel_.borrow(), wire::MessageType::setup,
                             wire::encode(describe(host)));
}

Result<void> Context::await_ready() {
  pollfd channel{channel_.borrow(), POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&channel, 1, kReadyDeadlineMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return base::failure("wait for its init", ETIMEDOUT);
  auto frame = wire::receive_datagram(channel_.borrow());
  if (!frame) return base::failure("its init ended early", frame.error().code);
  if (!*frame) return base::failure("its init said nothing", EPROTO);
  if ((*frame)->type != wire::MessageType::ready) return base::failure("wait for its init", EPROTO);
  auto answer = wire::decode<wire::Ready>((*frame)->payload);
  if (!answer) return tl::unexpected<base::Error>(answer.error());
  // The step's text names its errno already.
  if (answer->error != 0) return base::failure(answer->step, 0);
  lacks_ = answer->lacks.strings();
  if (!is_isolated(tier_)) return base::set_nonblocking(channel_.borrow(), true);
  // Not before: until its exec the init is a copy of this non-dumpable daemon, which an
  // unprivileged one may not look into.
  auto link = base::open_file("/proc/" + std::to_string(init_pid_) + "/ns/pid", O_RDONLY);
  if (!link) return tl::unexpected<base::Error>(link.error());
  pid_namespace_fd_ = std::move(*link);
  struct stat ns {};
  if (::fstat(pid_namespace_fd_.borrow(), &ns) != 0) return base::os_error("fstat a namespace");
  pid_namespace_ = ns.st_ino;
  return base::set_nonblocking(channel_.borrow(), true);
}

namespace {

/// Inode of the PID namespace of the process that connected `socket`; 0 = unknown.
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

bool Context::contains(int socket, pid_t pid) const {
  return !is_isolated(tier_) || peer_pid_namespace(socket, pid) == pid_namespace_;
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

Destroyed Context::destroy() {
  Destroyed result;
  if (init_pid_ <= 0) return result;
  // The death of PID 1 kills the namespace, and the kernel lets it be reaped only when all the
  // others are gone (pid_namespaces(7)). Without a namespace the init kills its descendants when
  // its channel closes.
  if (is_isolated(tier_)) ::syscall(SYS_pidfd_send_signal, init_pidfd_.borrow(), SIGKILL, 0, 0);
  channel_.reset();
  if (!await_end(init_pidfd_.borrow(), kDestroyDeadlineMs)) {
    ::syscall(SYS_pidfd_send_signal, init_pidfd_.borrow(), SIGKILL, 0, 0);
    await_end(init_pidfd_.borrow(), kDestroyDeadlineMs);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(init_pid_), &ended, WEXITED | WNOHANG);
  if (is_isolated(tier_)) result.survivors = count_members(pid_namespace_);
  init_pid_ = -1;
  return result;
}

Context::~Context() { destroy(); }

Result<void> probe_one(Tier tier, const RuntimeDir& runtime, const std::string& programs) {
  if (tier == Tier::uids || tier == Tier::landlock) {
    return base::failure("tier " + std::string(name_of(tier)), ENOTSUP,
                         "not available in this version");
  }
  ContextSpec spec;
  spec.name = "probe";
  auto context = Context::create(spec, {runtime, programs, tier});
  runtime.remove(spec.name);
  if (!context) return tl::unexpected<base::Error>(context.error());
  return {};
}

Tier probe_tier(const RuntimeDir& runtime, const std::string& programs,
                std::vector<std::string>& reasons) {
  for (const Tier tier : {Tier::namespaces, Tier::userns}) {
    auto probed = probe_one(tier, runtime, programs);
    if (probed) return tier;
    reasons.push_back(std::string(name_of(tier)) + ": " + probed.error().message());
  }
  return Tier::none;
}

}  // namespace contexts
