// airlock-init: PID 1 of a context. Started by routerd with an empty environment and one
// descriptor, kChannel. It builds the context's mounts, then splits in two: PID 1, which only
// reaps and cannot be killed from inside, and the spawner, which runs the programs (so that
// getppid() is not 1 and nobody thinks itself an orphan).

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "contexts/init/binfmt.h"
#include "contexts/init/confine.h"
#include "contexts/init/id_map.h"
#include "contexts/init/mounts.h"
#include "contexts/init/serve.h"
#include "contexts/init/start_tracer.h"
#include "contexts/init/syscall_filter.h"
#include "contexts/tier.h"
#include "wire/channel.h"

namespace contexts::init {
namespace {

constexpr int kChannel = 3;

// Nothing of the starter's accidental state may reach the context's programs.
void reset_process() {
  for (int signal = 1; signal <= 64; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(022);
  ::prctl(PR_SET_DUMPABLE, 0);  // exec has set it to 1 again
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kChannel; ++fd) ::dup3(null, fd, O_CLOEXEC);
  ::syscall(SYS_close_range, kChannel + 1, ~0u, 0);
  ::fcntl(kChannel, F_SETFD, FD_CLOEXEC);
  // Descriptors of many jobs pass through here; each job gets its requester's limit.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
}

/// Programs get at most `capabilities`: root programs by the bounding set (capabilities(7)), others
/// none. This process keeps a superset, so none of them may trace it.
void limit_capabilities(std::uint64_t capabilities) {
  for (unsigned capability = 0;; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) < 0) break;  // EINVAL: beyond the last one
    if ((capabilities >> capability & 1) == 0) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct {
    std::uint32_t version;
    int pid;
  } header{0x20080522 /* _LINUX_CAPABILITY_VERSION_3 */, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  sets[0].inheritable = sets[1].inheritable = 0;
  ::syscall(SYS_capset, &header, sets);
}

/// What could enforce the routing of agents. After Ready, so that routerd builds the farm
/// meanwhile.
void try_walls(const wire::Setup& setup) {
  wire::Walls walls;
  walls.ptrace_error = why_not_traced();
  walls.binfmt_error = is_isolated(static_cast<Tier>(setup.tier))
                           ? why_not_binfmt(setup.runtime_dir + "/airlock-stub")
                           : "needs a mount namespace of the context's own";
  (void)wire::send_datagram(kChannel, wire::MessageType::walls, wire::encode(walls));
}

bool is_channel_closed() {
  pollfd channel{kChannel, 0, 0};
  return ::poll(&channel, 1, 0) == 1 && (channel.revents & (POLLHUP | POLLERR)) != 0;
}

[[noreturn]] void fail(const base::Error& error) {
  wire::Ready failure;
  failure.error = error.code == 0 ? EIO : error.code;
  failure.step = error.message();
  (void)wire::send_datagram(kChannel, wire::MessageType::ready, wire::encode(failure));
  _exit(1);
}

/// With its PID namespace, if that is its own, and the shim farm, if there is one.
void report(const wire::Setup& setup, const wire::Ready& ready, base::UniqueFd farm) {
  const base::UniqueFd space(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  const int fds[] = {space.borrow(), farm.borrow()};
  const bool has_own = is_isolated(static_cast<Tier>(setup.tier));
  const std::size_t count = !has_own ? 0 : farm ? 2 : 1;
  (void)wire::send_datagram(kChannel, wire::MessageType::ready, wire::encode(ready),
                            std::span(fds, count));
}

wire::Setup receive_setup() {
  auto frame = wire::receive_datagram(kChannel);
  if (!frame) fail(frame.error());
  if (!*frame || (*frame)->type != wire::MessageType::setup) {
    fail({"receive the context's description", EPROTO, {}});
  }
  auto setup = wire::decode<wire::Setup>((*frame)->payload);
  if (!setup) fail(setup.error());
  return *setup;
}

/// The ids that the context is to have; a line in `lacks` if it has to do with the machine's.
IdMap map_ids(const wire::Setup& setup, wire::StringList& lacks) {
  if (setup.first_id == 0) return {};
  const auto mounts = own_mounts();
  auto ids =
      mounts ? IdMap::make(setup.first_id, *mounts) : tl::unexpected<base::Error>(mounts.error());
  if (ids) return std::move(*ids);
  lacks.add("its user ids are the machine's, uid 0 in it owns what uid 0 owns: " +
            ids.error().message());
  return {};
}

pid_t start_spawner(const wire::Setup& setup, const IdMap& ids) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (ids) {
    if (auto entered = ids.enter(); !entered) _exit(1);
    limit_capabilities(setup.capabilities);  // those of the user namespace
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // without a PID namespace nothing else ends it with us
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // The session of all programs that do not lead their own; it has no terminal.
  ::setsid();
  if (auto confined = confine_spawner(setup); !confined) _exit(1);
  serve(kChannel, setup.runtime_dir + "/farm", setup.reports_jobs);
  _exit(0);
}

/// What PID 1's part waits for. A PID namespace's own PID 1 is ended by a SIGKILL from outside; it
/// must not listen to SIGTERM, which its programs may send.
sigset_t watched_signals(const wire::Setup& setup) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  if (!is_isolated(static_cast<Tier>(setup.tier))) sigaddset(&set, SIGTERM);
  return set;
}

/// Takes note of all children that have ended; true if `spawner` was among them. One that is
/// stopped goes on: a program that stops its parent would stop the whole context.
bool reap(pid_t spawner) {
  bool is_spawner_dead = false;
  for (pid_t child = 1; child > 0;) {
    int status = 0;
    child = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (child != spawner) continue;
    if (WIFSTOPPED(status)) {
      ::kill(spawner, SIGCONT);
    } else {
      is_spawner_dead = true;
    }
  }
  return is_spawner_dead;
}

[[noreturn]] void end(const wire::Setup& setup) {
  kill_members(setup);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  _exit(0);
}

/// PID 1's whole life. A program with uid 0 can kill the spawner, and with it the knowledge of who
/// waits for whom: then everything ends and the context starts over, empty but usable.
[[noreturn]] void supervise(const wire::Setup& setup, const IdMap& ids) {
  const sigset_t watched = watched_signals(setup);
  for (pid_t spawner = start_spawner(setup, ids); spawner > 0;) {
    if (::sigwaitinfo(&watched, nullptr) == SIGTERM) end(setup);
    if (!reap(spawner)) continue;
    if (is_channel_closed()) end(setup);
    kill_members(setup);
    spawner = start_spawner(setup, ids);
  }
  end(setup);
}

}  // namespace
}  // namespace contexts::init

int main() {
  using namespace contexts;
  using namespace contexts::init;
  reset_process();
  auto setup = receive_setup();
  // Blocked, not lost: an early SIGTERM is the first thing supervise() sees.
  const sigset_t watched = watched_signals(setup);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  wire::Ready ready;
  base::UniqueFd farm;
  const IdMap ids = map_ids(setup, ready.lacks);
  if (is_isolated(static_cast<Tier>(setup.tier))) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Not earlier: its root is the cgroup that this process is in by now.
    if (::unshare(CLONE_NEWCGROUP) != 0) init::fail({"create a cgroup namespace", errno, {}});
    if (auto built = build_mounts(setup, ids, ready, farm); !built) init::fail(built.error());
  } else {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
  if (auto done = confine_init(setup, ready.lacks); !done) init::fail(done.error());
  limit_capabilities(setup.capabilities);
  if (setup.refused_calls != 0 && !can_filter_syscalls()) {
    setup.refused_calls = 0;
    ready.lacks.add("no system call is refused: this kernel has no seccomp filters");
  }
  if (is_channel_closed()) _exit(1);
  report(setup, ready, std::move(farm));
  if (setup.with_route) try_walls(setup);
  supervise(setup, ids);
}
