#include "preload/stub/stop_watch.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/raw_syscall.h"
#include "wire/channel.h"
#include "wire/limits.h"

using base::raw::call;

namespace {

bool is_stop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

std::string frame_of(const wire::Signal& message) {
  const std::string payload = wire::encode(message);
  wire::Header header;
  header.length = static_cast<std::uint32_t>(payload.size());
  header.type = wire::MessageType::signal;
  header.version = wire::kVersion;
  return wire::encode_header(header) + payload;
}

}  // namespace

void StopWatch::start(int socket) {
  socket_ = socket;
  stub_ = ::getpid();
  to_group_ = frame_of({SIGSTOP, wire::KillScope::group});
  to_process_ = frame_of({SIGSTOP, wire::KillScope::process});
  const long pid = base::raw::clone_on_stack(CLONE_VM | CLONE_FILES | CLONE_FS, stack_ + kStackSize,
                                             nullptr, &StopWatch::run, this);
  if (pid <= 0) return;
  pid_ = pid;
  ::prctl(PR_SET_PTRACER, pid_);  // Yama
  take_hold();
}

void StopWatch::take_hold() {
  if (pid_ == 0) return;
  passes_ = false;
  __atomic_add_fetch(&holds_, 1, __ATOMIC_RELEASE);
  call(SYS_futex, &holds_, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

bool StopWatch::is_new(int signal) {
  if (signal == SIGSTOP && std::exchange(has_told_, false)) return false;
  passes_ = true;
  return true;
}

// In the stub's memory beside the stub: raw system calls only.
void StopWatch::run(void* watch) {
  auto& self = *static_cast<StopWatch*>(watch);
  call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  call(SYS_setpgid, 0, 0);                                 // away from what the group is sent
  if (call(SYS_getppid) != self.stub_) call(SYS_exit, 0);  // it has died before
  for (int seen = 0;;) {
    while (__atomic_load_n(&self.holds_, __ATOMIC_ACQUIRE) == seen) {
      call(SYS_futex, &self.holds_, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
    }
    if (!self.watch_once()) call(SYS_exit, 0);
    seen = __atomic_load_n(&self.holds_, __ATOMIC_ACQUIRE);
  }
}

/// Until the stub has stopped. False: it cannot be traced, or has ended.
bool StopWatch::watch_once() {
  if (call(SYS_ptrace, PTRACE_SEIZE, stub_, 0, 0) < 0) return false;
  for (;;) {
    int status = 0;
    const long got = call(SYS_wait4, stub_, &status, __WALL, 0, 0, 0);
    if (got == -EINTR) continue;
    if (got < 0 || !WIFSTOPPED(status)) return false;
    const int signal = WSTOPSIG(status);
    const bool is_event = status >> 16 == PTRACE_EVENT_STOP;
    if (is_event && is_stop(signal)) {
      if (!passes_) tell();
      call(SYS_ptrace, PTRACE_DETACH, stub_, 0, 0);
      return true;
    }
    call(SYS_ptrace, PTRACE_CONT, stub_, 0, is_event ? 0 : signal);
  }
}

// The stub is stopped, so nobody else writes.
void StopWatch::tell() {
  has_told_ = true;
  const std::string& frame = witness_.is_stopping() ? to_group_ : to_process_;
  call(SYS_sendto, socket_, frame.data(), static_cast<long>(frame.size()),
       MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

void StopWatch::stop() {
  if (pid_ == 0) return;
  ::kill(static_cast<pid_t>(pid_), SIGKILL);
  while (::waitpid(static_cast<pid_t>(pid_), nullptr, __WALL) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}
