#include "preload/stub/group_witness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

#include "base/raw_syscall.h"

using base::raw::call;

namespace {

constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

void wait_while(int* word, int value, const timespec* limit) {
  call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, 0, 0);
}

void set(int* word, int value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  call(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

}  // namespace

void GroupWitness::start() {
  stub_ = ::getpid();
  // No exit signal: SIGCHLD would be taken for one that the program is to get. The descriptors are
  // shared, so that it holds none of its own open.
  const long pid = base::raw::clone_on_stack(CLONE_VM | CLONE_FILES | CLONE_FS, stack_ + kStackSize,
                                             nullptr, &GroupWitness::run, this);
  if (pid <= 0) return;
  pid_ = pid;
  status_ = "/proc/" + std::to_string(pid) + "/status";
}

// In the stub's memory beside the stub: raw system calls only.
void GroupWitness::run(void* witness) {
  auto& self = *static_cast<GroupWitness*>(witness);
  call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (call(SYS_getppid) != self.stub_) call(SYS_exit, 0);  // it has died before
  for (;;) {
    while (__atomic_load_n(&self.word_, __ATOMIC_ACQUIRE) != asked) {
      wait_while(&self.word_, __atomic_load_n(&self.word_, __ATOMIC_RELAXED), nullptr);
    }
    self.drain();
    set(&self.word_, answered);
  }
}

void GroupWitness::drain() {
  const timespec at_once{};
  for (;;) {
    const long signal = call(SYS_rt_sigtimedwait, &kAllSignals, 0, &at_once, sizeof kAllSignals);
    if (signal <= 0) return;
    seen_ |= std::uint64_t{1} << (signal - 1);
  }
}

bool GroupWitness::has_seen(int signal) {
  if (!is_running()) return false;
  set(&word_, asked);
  // It may be stopped, or killed.
  constexpr timespec kLimit{0, 100'000'000};
  if (__atomic_load_n(&word_, __ATOMIC_ACQUIRE) == asked) wait_while(&word_, asked, &kLimit);
  const std::uint64_t bit = std::uint64_t{1} << (signal - 1);
  const bool is_seen = (seen_ & bit) != 0;
  seen_ &= ~bit;
  return is_seen;
}

bool GroupWitness::is_stopping() const {
  char text[2048];
  const long file = call(SYS_openat, AT_FDCWD, status_.c_str(), O_RDONLY | O_CLOEXEC);
  if (!is_running() || file < 0) return false;
  const long size = call(SYS_read, file, text, sizeof text);
  call(SYS_close, file);
  const std::string_view status(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  // Signals that wait for the whole process, in hexadecimal (proc(5)).
  const auto pending = status.find("ShdPnd:\t");
  constexpr unsigned kDigits = 16;
  constexpr unsigned kDigit = (SIGSTOP - 1) / 4;
  const auto digit = pending + sizeof "ShdPnd:" + kDigits - 1 - kDigit;
  const bool is_pending = pending != std::string_view::npos && digit < status.size() &&
                          (status[digit] - '0' & 1 << (SIGSTOP - 1) % 4) != 0;
  return is_pending || status.find("State:\tT") != std::string_view::npos;
}

void GroupWitness::stop() {
  if (!is_running()) return;
  ::kill(static_cast<pid_t>(pid_), SIGKILL);
  while (::waitpid(static_cast<pid_t>(pid_), nullptr, __WALL) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}
