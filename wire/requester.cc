#include "wire/requester.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
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
      : socket_(socket),
        options_(options),
        terminal_(options.terminal),
        already_sent_(options.already_sent) {}

  Outcome run() {
    open_signals();
    auto outcome = await_start();
    if (!outcome) outcome = await_end();
    leave_terminal(*outcome);
    return std::move(*outcome);
  }

 private:
  // Past libc, which keeps the first real-time signals to itself; here they are the program's.
  static constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

  void open_signals() {
    (void)hold_signals();  // for a caller that has not
    signals_.reset(static_cast<int>(::syscall(SYS_signalfd4, -1, &kAllSignals, sizeof kAllSignals,
                                              SFD_CLOEXEC | SFD_NONBLOCK)));
  }

  /// Nothing when the program runs.
  std::optional<Outcome> await_start() {
    for (int waited_ms = 0; !started_;) {
      pollfd watched[2] = {{socket_, POLLIN, 0}, {signals_.borrow(), POLLIN, 0}};
      const int answer_limit = is_queued_ ? -1 : kAnswerDeadlineMs;
      const int limit = has_held_signal_ ? kPatienceMs : answer_limit;
      const int ready = ::poll(watched, has_held_signal_ ? 1 : 2, limit);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        waited_ms += limit;
        if (waited_ms >= kAnswerDeadlineMs && !is_queued_)
          return Lost{false, "no answer from the daemon"};
        let_signals_act();
      } else if (watched[0].revents != 0) {
        if (auto outcome = receive()) return outcome;
      } else {
        has_held_signal_ = true;
      }
    }
    return {};
  }

  Outcome await_end() {
    for (;;) {
      pollfd watched[2 + Relay::kWatched] = {{socket_, POLLIN, 0}, {signals_.borrow(), POLLIN, 0}};
      const nfds_t count = terminal_ != nullptr ? 2 + Relay::kWatched : 2;
      int limit = terminal_ != nullptr ? terminal_->watch(watched + 2) : -1;
      if (is_new_ && (limit < 0 || limit > kLongRunMs)) limit = kLongRunMs;
      const int ready = ::poll(watched, count, limit);
      if (ready < 0) continue;  // EINTR
      if (ready == 0 && std::exchange(is_new_, false)) options_.on_long_run(options_.argument);
      if (watched[0].revents != 0) {
        if (auto outcome = receive()) return std::move(*outcome);
      } else if (watched[1].revents != 0) {
        forward_signals();
      } else if (terminal_ != nullptr) {
        terminal_->act(watched + 2);
      }
    }
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

  std::optional<Outcome> take(Frame& frame) {
    switch (frame.type) {
      case MessageType::started:
        program_started(frame);
        return {};
      case MessageType::stopped:
        if (auto stopped = decode<Stopped>(frame.payload)) mirror_stop(stopped->signal);
        return {};
      case MessageType::give_terminal:
        give_terminal();
        return {};
      case MessageType::interrupted:
        if (auto typed = decode<Interrupted>(frame.payload)) interrupt_group(typed->signal);
        return {};
      case MessageType::queued:
        is_queued_ = true;
        return {};
      case MessageType::continued:
        program_continues();
        return {};
      case MessageType::exited:
        return ending<Exited>(frame);
      case MessageType::not_started:
        return ending<NotStarted>(frame);
      case MessageType::run_here:
        return run_here(frame);
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

  std::optional<Outcome> run_here(Frame& frame) {
    auto order = decode<RunHere>(frame.payload);
    if (!order) return Lost{started_, order.error().message()};
    if (!frame.fds.empty()) order->program_fd = frame.fds.front().release();
    return Outcome(std::move(*order));
  }

  void program_started(Frame& frame) {
    if (started_) return;
    started_ = true;
    is_new_ = options_.on_long_run != nullptr;
    if (options_.on_started != nullptr) options_.on_started(options_.argument);
    if (terminal_ != nullptr && frame.fds.size() == 1) {
      terminal_->start(std::move(frame.fds.front()), socket_);
    } else if (terminal_ != nullptr) {
      terminal_->decline();
    }
    for (const int signal : {SIGHUP, SIGCONT}) {
      if ((kept_signals_ & bit(signal)) != 0) (void)send_message(socket_, Signal{signal});
    }
    forward_signals();
  }

  bool has_relay() const { return terminal_ != nullptr && terminal_->is_running(); }

  static std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

  void forward_signals() {
    signalfd_siginfo info;
    while (::read(signals_.borrow(), &info, sizeof info) == sizeof info) {
      const auto signal = static_cast<std::int32_t>(info.ssi_signo);
      if ((std::exchange(already_sent_, already_sent_ & ~bit(signal)) & bit(signal)) != 0) continue;
      const KillScope scope = options_.scope_of != nullptr
                                  ? options_.scope_of(options_.argument, info)
                                  : KillScope::group;
      if (is_own_copy(info)) continue;
      if (signal == SIGWINCH && has_relay()) {
        terminal_->resize();
      } else if (signal == SIGCONT && has_relay()) {
        terminal_->resume();
      } else {
        (void)send_message(socket_, Signal{signal, scope});
      }
    }
  }

  /// Typed for the program: as if it shared our terminal, our group gets the signal, too.
  void interrupt_group(int signal) {
    if (!has_relay() || (signal != SIGINT && signal != SIGQUIT)) return;
    own_copies_ |= bit(signal);
    ::kill(0, signal);
  }

  bool is_own_copy(const signalfd_siginfo& info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (info.ssi_code != SI_USER || info.ssi_pid != static_cast<std::uint32_t>(::getpid())) {
      return false;
    }
    return (std::exchange(own_copies_, own_copies_ & ~bit(signal)) & bit(signal)) != 0;
  }

  void give_terminal() {
    if (terminal_ != nullptr) kept_signals_ = terminal_->give_up();
    (void)send_message(socket_, TerminalGiven{});
  }

  // The program stopped, so we stop by the same signal: our parent sees what it would have seen.
  // When we run again it must go on, too.
  void mirror_stop(int signal) {
    if (!options_.mirror_stops) return;
    const bool stops_too =
        options_.on_stopped == nullptr || options_.on_stopped(options_.argument, signal);
    if (!stops_too) return;
    if (has_relay()) {
      terminal_->suspend(signal);
    } else {
      stop_by(signal, false);
      (void)send_message(socket_, Signal{SIGCONT});
    }
    program_continues();
  }

  void program_continues() {
    if (options_.on_continued != nullptr) options_.on_continued(options_.argument);
  }

  /// While the last output is held up by the terminal, those that want us gone must be heard.
  void leave_terminal(const Outcome& outcome) {
    if (terminal_ == nullptr) return;
    const auto* exited = std::get_if<Exited>(&outcome);
    if (has_relay()) {
      forward_signals();
      const std::uint64_t ending = bit(SIGTERM) | bit(SIGHUP);
      const std::uint64_t heard = ending & ~options_.blocked_before;
      ::syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &heard, nullptr, sizeof heard);
    }
    const auto status = base::WaitStatus(exited != nullptr ? exited->wait_status : SIGKILL);
    terminal_->finish(status.term_signal().has_value());
  }

  int socket_;
  const AttendOptions& options_;
  Receiver receiver_;
  base::UniqueFd signals_;
  Relay* terminal_;
  std::uint64_t already_sent_;
  /// Signals we have sent our own group, ourselves included.
  std::uint64_t own_copies_ = 0;
  /// Signals that were pending when the terminal was given up.
  std::uint64_t kept_signals_ = 0;
  bool started_ = false;
  /// Others are before us; that may take any time.
  bool is_queued_ = false;
  /// Started, and has not run for long.
  bool is_new_ = false;
  bool has_held_signal_ = false;
};

}  // namespace

Outcome attend(int socket, const AttendOptions& options) {
  return Attendant(socket, options).run();
}

}  // namespace wire
