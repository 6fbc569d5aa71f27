#include "base/exit_like.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace base {

void exit_like(WaitStatus status) {
  if (const auto signal = status.term_signal()) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    // core_pattern may be a pipe, which ignores RLIMIT_CORE (core(5)); a non-dumpable process has
    // no core at all.
    prctl(PR_SET_DUMPABLE, 0);
    ::signal(*signal, SIG_DFL);
    kill(getpid(), *signal);
    // Past libc, which would leave the real-time signals it uses itself blocked.
    const std::uint64_t only = std::uint64_t{1} << (*signal - 1);
    ::syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &only, nullptr, sizeof only);
    _exit(128 + *signal);
  }
  _exit(status.exit_code().value_or(125));
}

}  // namespace base
