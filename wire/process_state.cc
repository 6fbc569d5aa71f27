#include "wire/process_state.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"

namespace wire {

namespace {

// The kernel's view of signal sets and dispositions, free of what a libc hides (musl's SIGRTMIN).
struct KernelSigaction {
  std::uintptr_t handler;
  unsigned long flags;
  std::uintptr_t restorer;
  std::uint64_t mask;
};

constexpr int kSignals = 64;

std::uint64_t ignored_signals() {
  std::uint64_t ignored = 0;
  for (int signal = 1; signal <= kSignals; ++signal) {
    KernelSigaction action{};
    if (::syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask) != 0) continue;
    if (action.handler == 1 /* SIG_IGN */) ignored |= std::uint64_t{1} << (signal - 1);
  }
  return ignored;
}

std::vector<Rlimit> rlimits() {
  std::vector<Rlimit> limits;
  limits.reserve(RLIM_NLIMITS);
  for (std::uint32_t resource = 0; resource < RLIM_NLIMITS; ++resource) {
    struct {
      std::uint64_t soft, hard;
    } limit{};
    if (::syscall(SYS_prlimit64, 0, resource, nullptr, &limit) != 0) continue;
    limits.push_back({resource, limit.soft, limit.hard});
  }
  return limits;
}

std::string cpu_affinity() {
  char mask[128];
  const long size = ::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  return size > 0 ? std::string(mask, static_cast<std::size_t>(size)) : std::string();
}

std::int32_t oom_score_adj() {
  const auto text = base::read_file("/proc/self/oom_score_adj");
  return text && !text->empty() ? std::atoi(text->c_str()) : ProcessState::kUnset;
}

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

std::vector<IntervalTimer> interval_timers() {
  std::vector<IntervalTimer> timers;
  for (const int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer{};
    if (::getitimer(which, &timer) != 0 || microseconds(timer.it_value) == 0) continue;
    timers.push_back({static_cast<std::uint32_t>(which), microseconds(timer.it_value),
                      microseconds(timer.it_interval)});
  }
  return timers;
}

/// What is set by prctl(2) and kept by an exec.
void capture_attributes(ProcessState& state) {
  state.no_new_privs = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  int value = 0;
  state.child_subreaper = ::prctl(PR_GET_CHILD_SUBREAPER, &value) == 0 && value != 0;
  if (::prctl(PR_GET_PDEATHSIG, &value) == 0) {
    state.parent_death_signal = static_cast<std::uint32_t>(value);
  }
  const long slack = ::syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0);
  state.timer_slack_ns = slack > 0 ? static_cast<std::uint64_t>(slack) : 0;
}

}  // namespace

ProcessState capture_process_state() {
  ProcessState state;
  state.umask = ::umask(0);
  ::umask(static_cast<mode_t>(state.umask));
  constexpr std::size_t kSetSize = sizeof(std::uint64_t);
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &state.blocked_signals, kSetSize);
  ::syscall(SYS_rt_sigpending, &state.pending_signals, kSetSize);
  state.ignored_signals = ignored_signals();
  errno = 0;
  state.nice = ::getpriority(PRIO_PROCESS, 0);
  constexpr int kIoprioWhoProcess = 1;  // ioprio_get(2); no libc declares it
  const long io_priority = ::syscall(SYS_ioprio_get, kIoprioWhoProcess, 0);
  state.io_priority = io_priority > 0 ? static_cast<std::int32_t>(io_priority) : 0;
  const int personality = ::personality(0xffffffff);
  state.personality = personality > 0 ? static_cast<std::uint32_t>(personality) : 0;
  state.affinity = cpu_affinity();
  state.rlimits = rlimits();
  state.session_leader = ::getsid(0) == ::getpid();
  state.group_leader = ::getpgrp() == ::getpid();
  state.oom_score_adj = oom_score_adj();
  // Past libc: musl refuses, as its threads would each have a scheduler.
  const long scheduler = ::syscall(SYS_sched_getscheduler, 0);
  state.scheduler = scheduler > 0 ? static_cast<std::uint32_t>(scheduler) : 0;
  state.timers = interval_timers();
  capture_attributes(state);
  return state;
}

}  // namespace wire
