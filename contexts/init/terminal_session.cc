#include "contexts/init/terminal_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/terminal.h"
#include "base/wait_status.h"
#include "contexts/init/groups.h"

namespace contexts::init {
namespace {

using Report = TerminalSession::Report;

/// To the monitor.
struct Order {
  bool foreground;
};

/// The session's leader: starts the program, tells what becomes of it, and ends with it.
class Monitor {
 public:
  Monitor(wire::ExecRequest request, std::vector<base::UniqueFd> fds, AgentWall wall, int terminal,
          int channel)
      : request_(std::move(request)),
        fds_(std::move(fds)),
        wall_(std::move(wall)),
        terminal_(terminal),
        channel_(channel) {}

  void run() {
    if (!lead_session() || !start_program()) return;
    while (is_running_) {
      pollfd watched[2] = {{channel_, POLLIN, 0}, {children_.borrow(), POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0) continue;
      if (watched[0].revents != 0 && !take_order()) return;
      if (watched[1].revents != 0) reap();
    }
    // Until the spawner lets go of us it may ask who had the foreground (wire::Typed).
    Order late{};
    while (::recv(channel_, &late, sizeof late, 0) > 0) {
    }
    // The end of a session's leader hangs up its foreground group. What the program has left there
    // on purpose was not its last command.
    if (foreground() == group_) set_foreground(::getpgrp());
  }

 private:
  bool lead_session() {
    ::setsid();
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);  // none of what a terminal sends is for us
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    children_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    if (::ioctl(terminal_, TIOCSCTTY, 0) == 0) return true;
    Report failure{.kind = Report::Kind::not_started};
    failure.step = SpawnStep::terminal;
    failure.error = errno;
    tell(failure);
    return false;
  }

  bool start_program() {
    const int lent = request_.state.group_leader ? 0 : groups_.take();
    launch_.emplace(std::move(request_), std::move(fds_), lent, std::move(wall_));
    auto pid = launch_->start();
    Report report{.kind = Report::Kind::not_started};
    if (pid) {
      program_ = *pid;
      group_ = foreground_ = lent != 0 ? lent : program_;
      // As the child does itself: whoever signals the group from now on must reach it.
      ::setpgid(program_, group_);
      report = {.kind = Report::Kind::started, .pid = program_, .group = group_};
    } else {
      report.error = pid.error().code;
    }
    tell(report);
    return pid.has_value();
  }

  void tell(const Report& report) const {
    (void)::send(channel_, &report, sizeof report, MSG_NOSIGNAL);
  }

  bool take_order() {
    Order order{};
    if (::recv(channel_, &order, sizeof order, 0) != sizeof order) return false;
    const int now = foreground();
    if (!order.foreground && now != ::getpgrp()) {
      foreground_ = now;
      set_foreground(::getpgrp());
    } else if (order.foreground && now == ::getpgrp()) {
      set_foreground(foreground_);
    }
    ::kill(-group_, SIGCONT);
    return true;
  }

  void reap() {
    signalfd_siginfo info;
    while (::read(children_.borrow(), &info, sizeof info) == sizeof info) {
    }
    Report report{.kind = Report::Kind::changed, .pid = program_};
    while (::wait4(program_, &report.status, WNOHANG | WUNTRACED | WCONTINUED, &report.usage) > 0) {
      const base::WaitStatus status(report.status);
      is_running_ = status.stop_signal().has_value() || status.is_continued();
      if (!is_running_ && launch_->error() != 0) {
        report.kind = Report::Kind::not_started;
        report.step = launch_->failed_step();
        report.error = launch_->error();
      }
      tell(report);
      if (!is_running_) return;
    }
  }

  int foreground() const {
    int group = 0;
    return ::ioctl(terminal_, TIOCGPGRP, &group) == 0 ? group : -1;
  }
  void set_foreground(int group) const { ::ioctl(terminal_, TIOCSPGRP, &group); }

  wire::ExecRequest request_;
  std::vector<base::UniqueFd> fds_;
  AgentWall wall_;
  ProcessGroups groups_;
  std::optional<Launch> launch_;
  int terminal_;
  int channel_;
  base::UniqueFd children_;
  int program_ = -1;
  /// Its process group.
  int group_ = -1;
  /// Who gets the foreground back: that group, or one of the program's jobs.
  int foreground_ = -1;
  bool is_running_ = true;
};

/// In the forked child: nothing of the spawner's other jobs may be held open.
void close_all_but(const std::vector<int>& kept) {
  for (const int fd : base::open_fds()) {
    if (std::find(kept.begin(), kept.end(), fd) == kept.end()) ::close(fd);
  }
}

void prepare(const base::Pty& pty, const wire::ExecRequest& request) {
  base::Termios settings;
  if (request.termios.size() == sizeof settings) {
    std::memcpy(&settings, request.termios.data(), sizeof settings);
    base::set_termios(pty.slave.borrow(), settings);
  }
  const auto& size = request.winsize;
  const winsize wanted{size.rows, size.columns, size.x_pixels, size.y_pixels};
  ::ioctl(pty.master.borrow(), TIOCSWINSZ, &wanted);
  // The program may open it by its name. EPERM: one id is mapped, and it is that.
  (void)::fchown(pty.slave.borrow(), request.credentials.uid, static_cast<gid_t>(-1));
}

}  // namespace

base::Result<std::unique_ptr<TerminalSession>> TerminalSession::start(
    wire::ExecRequest request, std::vector<base::UniqueFd> fds, AgentWall wall) {
  auto pty = base::open_pty();
  if (!pty) return tl::unexpected<base::Error>(pty.error());
  prepare(*pty, request);
  for (const auto number : request.terminal_fds) {
    auto copy = base::duplicate(pty->slave.borrow());
    if (!copy) return tl::unexpected<base::Error>(copy.error());
    request.fd_numbers.push_back(number);
    fds.push_back(std::move(*copy));
  }
  request.tty_fd = request.terminal_fds.front();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  base::UniqueFd ours(ends[0]), theirs(ends[1]);
  std::vector<int> kept = {pty->slave.borrow(), theirs.borrow()};
  for (const auto& fd : fds) kept.push_back(fd.borrow());
  for (const int fd : wall.descriptors()) kept.push_back(fd);
  const pid_t monitor = ::fork();
  if (monitor < 0) return base::os_error("start a process");
  if (monitor == 0) {
    close_all_but(kept);
    Monitor(std::move(request), std::move(fds), std::move(wall), kept[0], kept[1]).run();
    _exit(0);
  }
  (void)base::set_nonblocking(ours.borrow(), true);
  return std::unique_ptr<TerminalSession>(
      new TerminalSession(std::move(request), monitor, std::move(pty->master), std::move(ours)));
}

base::Result<std::optional<Report>> TerminalSession::receive() {
  Report report;
  const ssize_t size = ::recv(channel_.borrow(), &report, sizeof report, 0);
  if (size == sizeof report) return std::optional(report);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Report>();
  return base::failure("hear of a program", ECONNRESET);
}

void TerminalSession::resume(bool foreground) const {
  const Order order{foreground};
  (void)::send(channel_.borrow(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TerminalSession::resize(const wire::Winsize& size) const {
  const winsize wanted{size.rows, size.columns, size.x_pixels, size.y_pixels};
  ::ioctl(master_.borrow(), TIOCSWINSZ, &wanted);
}

bool TerminalSession::has_foreground(int group) const {
  int foreground = 0;
  return ::ioctl(master_.borrow(), TIOCGPGRP, &foreground) == 0 && foreground == group;
}

}  // namespace contexts::init
