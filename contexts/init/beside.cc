#include "contexts/init/beside.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "wire/requester.h"

namespace contexts::init {
namespace {

// The program we become must not find a signal of ours pending.
void forget_child_signal() {
  const std::uint64_t child_ended = std::uint64_t{1} << (SIGCHLD - 1);
  const timespec now{};
  ::syscall(SYS_rt_sigtimedwait, &child_ended, nullptr, &now, sizeof child_ended);
}

}  // namespace

int keep_only(std::initializer_list<int> wanted) {
  constexpr int kFirst = 3;
  int moved[kMostKept];
  int count = 0;
  // Away from the numbers that they are to get.
  for (const int fd : wanted) {
    moved[count++] = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirst + kMostKept);
  }
  for (int i = 0; i < count; ++i) ::dup3(moved[i], kFirst + i, O_CLOEXEC);
  ::syscall(SYS_close_range, kFirst + count, ~0u, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kFirst; ++fd) ::dup3(null, fd, O_CLOEXEC);
  return kFirst;
}

base::UniqueFd start_beside(BesideBody body, const void* argument) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  const pid_t self = ::getpid();
  const pid_t between = ::fork();
  if (between == 0) {
    if (::fork() == 0) {
      (void)wire::hold_signals();
      ::setsid();
      (void)!::chdir("/");
      body(self, keep_only({theirs.borrow()}), argument);
    }
    _exit(0);
  }
  if (between < 0) return {};
  ::waitpid(between, nullptr, 0);
  forget_child_signal();
  return ours;
}

}  // namespace contexts::init
