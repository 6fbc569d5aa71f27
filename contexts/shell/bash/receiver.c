/* Lets a plain bash receive descriptors: preloaded (LD_PRELOAD) by the shell host where bash is
 * none that airlock's builtin fits. It gives kill(2) a meaning for two numbers that are no pids
 * (shell_protocol.h), since `builtin kill -0 NUMBER` is a call any bash makes as it is written.
 *
 * It needs nothing but syscall(2) of the libc that this bash happens to use, be it glibc or musl.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contexts/shell/shell_protocol.h"

static uint64_t microseconds(struct timeval time) {
  return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Of this process, not of a subshell that it has forked: that one has a usage of its own. */
static int tell_usage(void) {
  struct rusage self;
  struct rusage children;
  syscall(SYS_getrusage, RUSAGE_SELF, &self);
  syscall(SYS_getrusage, RUSAGE_CHILDREN, &children);
  const struct ShellUsage usage = {
      .user_us = microseconds(self.ru_utime) + microseconds(children.ru_utime),
      .system_us = microseconds(self.ru_stime) + microseconds(children.ru_stime),
      .max_rss_kib = (uint64_t)children.ru_maxrss,
  };
  const long sent = syscall(SYS_sendto, kShellLoopChannel, &usage, sizeof usage,
                            MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
  return sent == (long)sizeof usage ? 0 : -1;
}

/* They came before bash was told to ask for them. */
static int receive(int* fds) {
  char byte;
  char control[CMSG_SPACE(sizeof(int) * kShellLoopFds)];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  const long n = syscall(SYS_recvmsg, kShellLoopChannel, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n != 1) return -1;
  const struct cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == NULL || rights->cmsg_len != CMSG_LEN(sizeof(int) * kShellLoopFds)) return -1;
  memcpy(fds, CMSG_DATA(rights), sizeof(int) * kShellLoopFds);
  return 0;
}

/* They become the shell's 0, 1 and 2, until bash puts back what it has saved. */
static int take_descriptors(void) {
  int fds[kShellLoopFds];
  if (receive(fds) != 0) return -1;
  int result = 0;
  for (int i = 0; i < kShellLoopFds; ++i) {
    if (syscall(SYS_dup3, fds[i], i, 0) < 0) result = -1;
    syscall(SYS_close, fds[i]);
  }
  return result;
}

/* A shell without its host would run on, unseen; programs it starts are to know nothing of it. */
static int begin(void) {
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return (int)syscall(SYS_fcntl, kShellLoopChannel, F_SETFD, FD_CLOEXEC);
}

__attribute__((visibility("default"))) int kill(pid_t pid, int signal) {
  if (signal == 0 && pid == kShellLoopBegin) return begin();
  if (signal == 0 && pid == kShellLoopTake) return take_descriptors();
  if (signal == 0 && pid == kShellLoopUsage) return tell_usage();
  return (int)syscall(SYS_kill, pid, signal);
}
