#include "ctl/first_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace ctl {
namespace {

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Reaps all that has ended; the exit code of `child` if that was among them.
std::optional<int> reap(pid_t child) {
  std::optional<int> code;
  int status = 0;
  for (pid_t pid = 1; pid > 0;) {
    pid = ::waitpid(-1, &status, WNOHANG);
    if (pid == child) code = exit_code_of(status);
  }
  return code;
}

int attend(pid_t child, const sigset_t& all) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&all, &info);
    if (signal == SIGCHLD) {
      if (const auto code = reap(child)) return *code;
    } else if (signal > 0 && info.si_code <= 0) {
      // Somebody's kill(2). What a terminal sends has reached the child's process group as well.
      ::kill(child, signal);
    }
  }
}

}  // namespace

int as_first_process(const std::function<int()>& body) {
  if (::getpid() != 1) return body();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child < 0) {
    ::perror("airlock: fork");
    return 126;
  }
  if (child > 0) return attend(child, all);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return body();
}

}  // namespace ctl
