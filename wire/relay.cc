#include "wire/relay.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "wire/channel.h"

namespace wire {
namespace {

constexpr std::size_t kBlock = 16 << 10;
/// A blocking output takes this much when poll(2) says that it can be written (pipe(7): PIPE_BUF;
/// terminals: WAKEUP_CHARS of drivers/tty/tty.h).
constexpr std::size_t kNeverBlocks = 256;
/// Background processes of a program may go on writing after its end.
constexpr std::size_t kMostLeftOver = 1 << 20;
/// How often to look whether the other requester has let go of the outer terminal.
constexpr int kQueueMs = 20;

Winsize to_wire(const winsize& size) {
  return {size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel};
}

bool is_pipe(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/// The controlling terminal if it is among 0, 1 and 2, else the first terminal there; -1: none.
int find_terminal() {
  int found = -1;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (!base::is_terminal(fd) || base::is_pty_master(fd)) continue;
    if (base::is_controlling(fd)) return fd;
    if (found < 0) found = fd;
  }
  return found;
}

bool is_again(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

std::unique_ptr<Relay> Relay::offer(ExecRequest& request) {
  const int terminal = find_terminal();
  if (terminal < 0) return nullptr;
  auto outer = OuterTerminal::open(terminal);
  const auto settings = base::termios_of(terminal);
  if (!outer || !settings) return nullptr;
  std::unique_ptr<Relay> relay(new Relay);
  relay->outer_.emplace(std::move(*outer));
  relay->input_ = relay->output_ = relay->outer_->fd();
  relay->initial_ = *settings;
  relay->wants_input_ = base::is_same_terminal(STDIN_FILENO, terminal) && !is_pipe(STDOUT_FILENO);
  relay->is_attached_ = relay->wants_input_ && relay->outer_->may_read() && relay->outer_->hold();
  const bool may_give = base::leads_session_of(terminal) && base::is_pty_slave(terminal);
  request.tty = may_give ? TtyMode::hand_over : TtyMode::fresh;
  request.tty_fd = static_cast<std::uint32_t>(terminal);
  request.winsize = to_wire(base::winsize_of(terminal));
  request.termios.assign(reinterpret_cast<const char*>(&*settings), sizeof *settings);
  request.foreground = relay->is_attached_;
  return relay;
}

std::unique_ptr<Relay> Relay::force(ExecRequest& request) {
  auto relay = offer(request);
  if (relay == nullptr) relay.reset(new Relay);
  if (request.winsize == Winsize{}) request.winsize = {24, 80, 0, 0};
  if (!base::is_terminal(STDIN_FILENO)) {
    // What is typed is not what the program reads: the terminal only shows its output.
    relay->outer_.reset();
    relay->input_ = STDIN_FILENO;
  }
  if (!relay->outer_ || !base::is_terminal(STDOUT_FILENO)) relay->output_ = STDOUT_FILENO;
  relay->wants_input_ = true;
  relay->is_attached_ = !relay->outer_ || (relay->outer_->may_read() && relay->outer_->hold());
  request.tty = TtyMode::fresh;
  request.terminal_fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  request.foreground = relay->is_attached_;
  return relay;
}

void Relay::start(base::UniqueFd master, int connection) {
  master_ = std::move(master);
  connection_ = connection;
  (void)base::set_nonblocking(master_.borrow(), true);
  size_ = base::winsize_of(master_.borrow());
  if (!outer_) return;
  resize();
  if (is_attached_) {
    outer_->enter_raw();
  } else if (wants_input_) {
    // A shell may make its job the foreground one only after it was started.
    try_attach();
  }
}

std::uint64_t Relay::give_up() {
  decline();
  sigset_t both, pending;
  sigemptyset(&both);
  sigaddset(&both, SIGHUP);
  sigaddset(&both, SIGCONT);
  ::sigpending(&pending);
  // Blocked signals are kept even if they are ignored, so they must be let in to be lost.
  const auto hup = ::signal(SIGHUP, SIG_IGN);
  const auto cont = ::signal(SIGCONT, SIG_IGN);
  ::sigprocmask(SIG_UNBLOCK, &both, nullptr);
  if (outer_) ::ioctl(outer_->fd(), TIOCNOTTY);
  ::sigprocmask(SIG_BLOCK, &both, nullptr);
  ::signal(SIGHUP, hup);
  ::signal(SIGCONT, cont);
  std::uint64_t before = 0;
  for (const int signal : {SIGHUP, SIGCONT}) {
    if (::sigismember(&pending, signal) == 1) before |= std::uint64_t{1} << (signal - 1);
  }
  return before;
}

void Relay::decline() {
  if (outer_) outer_->release();
  is_attached_ = wants_input_ = false;
}

bool Relay::try_attach() {
  if (is_attached_) return true;
  is_queueing_ = false;
  if (!outer_->may_read()) return false;
  if (!outer_->hold()) {
    is_queueing_ = true;
    return false;
  }
  to_outer_ += newlines_.rest();
  adopt_settings();
  is_attached_ = outer_->enter_raw();
  if (!is_attached_) return false;
  resize();
  tell_resumed();
  return true;
}

/// In the background the settings were somebody else's (a shell's that edits its line). A program
/// that has not made its own gets those of the foreground.
void Relay::adopt_settings() {
  const auto outside = base::termios_of(outer_->fd());
  if (!outside || base::termios_of(master_.borrow()) != initial_) return;
  if (base::set_termios(master_.borrow(), *outside)) initial_ = *outside;
}

void Relay::detach() {
  if (outer_) outer_->release();
  is_attached_ = is_queueing_ = false;
}

void Relay::tell_resumed() { (void)send_message(connection_, Resume{is_attached_}); }

int Relay::watch(pollfd* watched) const {
  for (int i = 0; i < kWatched; ++i) watched[i] = {-1, 0, 0};
  if (!is_running()) return -1;
  if (is_attached_ && to_inner_.empty()) watched[0] = {input_, POLLIN, 0};
  if (!to_outer_.empty()) watched[1] = {output_, POLLOUT, 0};
  if (to_outer_.empty() && !is_inner_ended_) watched[2] = {master_.borrow(), POLLIN, 0};
  if (!to_inner_.empty() && !is_inner_ended_) watched[3] = {master_.borrow(), POLLOUT, 0};
  return is_queueing_ ? kQueueMs : -1;
}

void Relay::act(const pollfd* watched) {
  if (is_queueing_) try_attach();
  if (is_running() && watched[1].revents != 0) write_outer();
  if (is_running() && watched[3].revents != 0) write_inner();
  if (is_running() && watched[2].revents != 0) read_inner();
  if (is_running() && watched[0].revents != 0) read_outer();
}

void Relay::read_outer() {
  char block[kBlock];
  const ssize_t size = ::read(input_, block, sizeof block);
  if (size < 0 && is_again(errno)) return;
  if (size <= 0) return end_input();
  to_inner_.append(block, static_cast<std::size_t>(size));
  const auto settings = base::termios_of(master_.borrow());
  if (outer_ && settings && outer_->is_controlling()) {
    const int signal = typed_.find({block, static_cast<std::size_t>(size)}, *settings);
    if (signal != 0) (void)send_message(connection_, Typed{signal});
  }
  write_inner();
}

void Relay::end_input() {
  if (outer_ && input_ == outer_->fd()) {
    // EIO also means that a shell has taken the foreground without stopping us.
    if (outer_->may_read()) return lose_outer();
    is_attached_ = false;
    return;
  }
  const auto settings = base::termios_of(master_.borrow());
  if (settings) to_inner_.push_back(static_cast<char>(settings->characters[VEOF]));
  input_ = -1;  // poll(2) skips it
}

void Relay::write_inner() {
  const ssize_t size = ::write(master_.borrow(), to_inner_.data(), to_inner_.size());
  if (size > 0) to_inner_.erase(0, static_cast<std::size_t>(size));
}

void Relay::read_inner() {
  char block[kBlock];
  const ssize_t size = ::read(master_.borrow(), block, sizeof block);
  if (size < 0 && is_again(errno)) return;
  if (size <= 0) {  // EIO: nobody has the terminal any more
    is_inner_ended_ = true;
    return;
  }
  const std::string_view bytes(block, static_cast<std::size_t>(size));
  // Until it is raw the outer terminal translates newlines, and the inner one has done so before.
  const auto outside = outer_ && is_attached_ ? std::nullopt : base::termios_of(output_);
  const bool is_twice = outside && (outside->output & OPOST) != 0 && (outside->output & ONLCR) != 0;
  if (is_twice) {
    to_outer_ += newlines_.restore(bytes);
  } else {
    to_outer_ += newlines_.rest();
    to_outer_ += bytes;
  }
  if (!to_outer_.empty()) write_outer();
}

void Relay::write_outer() {
  const bool is_blocking = !outer_ || output_ != outer_->fd() || outer_->is_blocking();
  const std::size_t most = is_blocking ? kNeverBlocks : to_outer_.size();
  pollfd writable{output_, POLLOUT, 0};
  if (is_blocking && ::poll(&writable, 1, 0) != 1) return;
  const ssize_t size = ::write(output_, to_outer_.data(), std::min(most, to_outer_.size()));
  if (size > 0) to_outer_.erase(0, static_cast<std::size_t>(size));
  if (size < 0 && !is_again(errno)) lose_outer();
}

/// All that the program has written, as far as the outer terminal takes it.
void Relay::flush_output() {
  for (std::size_t total = 0; is_running() && total < kMostLeftOver;) {
    if (to_outer_.empty() && !is_inner_ended_) read_inner();
    if (to_outer_.empty()) return;
    total += to_outer_.size();
    while (is_running() && !to_outer_.empty()) {
      pollfd writable{output_, POLLOUT, 0};
      if (::poll(&writable, 1, -1) < 0 && errno != EINTR) return lose_outer();
      write_outer();
    }
  }
}

void Relay::lose_outer() {
  to_outer_.clear();
  to_inner_.clear();
  master_.reset();  // the program's terminal hangs up
}

void Relay::resize() {
  if (!outer_ || !is_running()) return;
  const winsize size = base::winsize_of(outer_->fd());
  if (std::memcmp(&size, &size_, sizeof size) == 0) return;
  size_ = size;
  ::ioctl(master_.borrow(), TIOCSWINSZ, &size_);
}

void Relay::suspend(int signal) {
  const bool asks = signal == SIGTTIN || signal == SIGTTOU;
  if (asks && !is_attached_ && outer_) {
    wants_input_ = true;
    if (outer_->may_read()) {
      try_attach();
      return;
    }
  }
  flush_output();
  detach();
  stop_by(signal, signal != SIGSTOP);
  resume();
}

void Relay::resume() {
  if (!is_running()) return;
  if (!outer_) return tell_resumed();
  resize();
  if (is_attached_ && outer_->is_raw() && outer_->may_read()) return tell_resumed();
  detach();
  if (!wants_input_ || !try_attach()) tell_resumed();
}

void Relay::finish(bool was_killed) {
  if (!is_running()) return decline();
  flush_output();
  to_outer_ += newlines_.rest();
  flush_output();
  std::optional<base::Termios> chosen;
  if (is_running() && outer_ && is_attached_ && !was_killed) {
    chosen = base::termios_of(master_.borrow());
    if (chosen == initial_) chosen.reset();
    const winsize size = base::winsize_of(master_.borrow());
    if (std::memcmp(&size, &size_, sizeof size) != 0) ::ioctl(outer_->fd(), TIOCSWINSZ, &size);
  }
  master_.reset();
  if (outer_) outer_->release(chosen);
  is_attached_ = false;
}

void stop_by(int signal, bool whole_group) {
  ::signal(signal, SIG_DFL);
  ::kill(whole_group ? 0 : ::getpid(), signal);
  if (signal == SIGSTOP) return;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::sigprocmask(SIG_BLOCK, &only, nullptr);
}

}  // namespace wire
