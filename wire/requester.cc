#include "wire/requester.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "wire/channel.h"
#include "wire/limits.h"

namespace wire {

base::Result<base::UniqueFd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return base::failure("connect " + path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return base::os_error("socket");
  if (::connect(socket.borrow(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    return base::os_error("connect " + path);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.borrow(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return base::os_error("SO_PEERCRED");
  }
  if (peer.uid != 0 && peer.uid != ::geteuid()) {
    return base::failure("connect " + path, EPERM,
                         "uid " + std::to_string(peer.uid) + " listens there");
  }
  return socket;
}

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
  state.no_new_privs = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  return state;
}

std::uint64_t hold_signals() {
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  return before;
}

namespace {

/// Forwards signals and mirrors stops while a program runs elsewhere.
class Attendant {
 public:
  Attendant(int socket, const AttendOptions& options)
      : socket_(socket), options_(options), already_sent_(options.already_sent) {}

  Outcome run() {
    open_signals();
    int waited_ms = 0;
    for (;;) {
      const bool is_impatient = !started_ && has_held_signal_;
      pollfd watched[2] = {{socket_, POLLIN, 0}, {signals_.borrow(), POLLIN, 0}};
      const int limit = is_impatient ? kPatienceMs : kAnswerDeadlineMs;
      const int ready = ::poll(watched, is_impatient ? 1 : 2, started_ ? -1 : limit);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        waited_ms += limit;
        if (waited_ms >= kAnswerDeadlineMs) return Lost{false, "no answer from the daemon"};
        let_signals_act();
        continue;
      }
      if (watched[0].revents != 0) {
        if (auto outcome = receive()) return std::move(*outcome);
      } else if (started_) {
        forward_signals();
      } else {
        has_held_signal_ = true;
      }
    }
  }

 private:
  // Past libc, which keeps the first real-time signals to itself; here they are the program's.
  static constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

  void open_signals() {
    (void)hold_signals();  // for a caller that has not
    signals_.reset(static_cast<int>(::syscall(SYS_signalfd4, -1, &kAllSignals, sizeof kAllSignals,
                                              SFD_CLOEXEC | SFD_NONBLOCK)));
  }

  void let_signals_act() {
    const std::uint64_t before = options_.blocked_before;
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    (void)hold_signals();
    has_held_signal_ = false;
  }

  std::optional<Outcome> receive() {
    auto frame = receiver_.receive(socket_);
    if (!frame) return Lost{started_, frame.error().message()};
    return *frame ? take(**frame) : std::nullopt;
  }

  std::optional<Outcome> take(const Frame& frame) {
    switch (frame.type) {
      case MessageType::started:
        program_started();
        return {};
      case MessageType::stopped:
        if (auto stopped = decode<Stopped>(frame.payload)) mirror_stop(stopped->signal);
        return {};
      case MessageType::continued:
        return {};
      case MessageType::exited:
        return ending<Exited>(frame);
      case MessageType::not_started:
        return ending<NotStarted>(frame);
      case MessageType::run_here:
        return ending<RunHere>(frame);
      default:
        return Lost{started_, "unexpected message from the daemon"};
    }
  }

  template <class Message>
  std::optional<Outcome> ending(const Frame& frame) {
    auto message = decode<Message>(frame.payload);
    if (!message) return Lost{started_, message.error().message()};
    return Outcome(std::move(*message));
  }

  void program_started() {
    if (started_) return;
    started_ = true;
    if (options_.on_started != nullptr) options_.on_started(options_.argument);
    forward_signals();
  }

  void forward_signals() {
    signalfd_siginfo info;
    while (::read(signals_.borrow(), &info, sizeof info) == sizeof info) {
      const std::uint64_t bit = std::uint64_t{1} << (info.ssi_signo - 1);
      if ((std::exchange(already_sent_, already_sent_ & ~bit) & bit) != 0) continue;
      (void)send_message(socket_, Signal{static_cast<std::int32_t>(info.ssi_signo)});
    }
  }

  // The program stopped, so we stop by the same signal: our parent sees what it would have seen.
  // A terminal stop of an orphaned group is dropped by the kernel (setpgid(2)); either way the
  // program must go on when we do.
  void mirror_stop(int signal) {
    if (!options_.mirror_stops) return;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    ::kill(::getpid(), signal);
    if (signal != SIGSTOP) {
      ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
      ::sigprocmask(SIG_BLOCK, &only, nullptr);
    }
    (void)send_message(socket_, Signal{SIGCONT});
  }

  int socket_;
  const AttendOptions& options_;
  Receiver receiver_;
  base::UniqueFd signals_;
  std::uint64_t already_sent_;
  bool started_ = false;
  bool has_held_signal_ = false;
};

}  // namespace

Outcome attend(int socket, const AttendOptions& options) {
  return Attendant(socket, options).run();
}

}  // namespace wire
