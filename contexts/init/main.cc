// airlock-init: PID 1 of a context. Started by routerd with an empty environment and one
// descriptor, kChannel. It builds the context's mounts, then splits in two: PID 1, which only
// reaps and cannot be killed from inside, and the spawner, which runs the programs (so that
// getppid() is not 1 and nobody thinks itself an orphan).

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "contexts/init/mounts.h"
#include "contexts/init/serve.h"
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

bool is_channel_closed() {
  pollfd channel{kChannel, 0, 0};
  return ::poll(&channel, 1, 0) == 1 && (channel.revents & (POLLHUP | POLLERR)) != 0;
}

[[noreturn]] void fail(const base::Error& error) {
  const wire::Ready failure{error.code == 0 ? EIO : error.code, error.message(), {}};
  (void)wire::send_datagram(kChannel, wire::MessageType::ready, wire::encode(failure));
  _exit(1);
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

/// Without a PID namespace: kills the children until there are none; the orphans of each come to
/// us as their subreaper (prctl(2)) and are next.
void kill_descendants() {
  for (;;) {
    auto children = base::read_file("/proc/thread-self/children");
    if (!children) return;
    for (char* at = children->data(); *at != '\0';) {
      char* end = at;
      const long pid = std::strtol(at, &end, 10);
      if (end == at) break;
      ::kill(static_cast<pid_t>(pid), SIGKILL);
      at = end;
    }
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

void kill_everything(Tier tier) {
  if (is_isolated(tier)) {
    ::kill(-1, SIGKILL);
  } else {
    kill_descendants();
  }
}

pid_t start_spawner() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // without a PID namespace nothing else ends it with us
  // The session of all programs that do not lead their own; it has no terminal.
  ::setsid();
  serve(kChannel);
  _exit(0);
}

/// PID 1's whole life. A program with uid 0 can kill the spawner, and with it the knowledge of who
/// waits for whom: then everything ends and the context starts over, empty but usable.
[[noreturn]] void supervise(Tier tier) {
  for (pid_t spawner = start_spawner(); spawner > 0;) {
    const pid_t dead = ::waitpid(-1, nullptr, 0);
    if (dead < 0 && errno == ECHILD) _exit(1);
    if (dead != spawner) continue;
    kill_everything(tier);
    if (is_channel_closed()) break;
    spawner = start_spawner();
  }
  _exit(0);
}

}  // namespace
}  // namespace contexts::init

int main() {
  using namespace contexts;
  using namespace contexts::init;
  reset_process();
  const auto setup = receive_setup();
  const auto tier = static_cast<Tier>(setup.tier);
  wire::Ready ready;
  if (is_isolated(tier)) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (auto built = build_mounts(setup, ready.lacks); !built) init::fail(built.error());
  } else {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  limit_capabilities(setup.capabilities);
  if (is_channel_closed()) _exit(1);
  (void)wire::send_datagram(kChannel, wire::MessageType::ready, wire::encode(ready));
  supervise(tier);
}
