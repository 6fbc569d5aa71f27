#include "wire/outer_terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace wire {

namespace {

/// Not on 0, 1 or 2, which may be closed and are then to stay so.
base::Result<base::UniqueFd> open_high(const std::string& path, int flags) {
  auto opened = base::open_file(path, flags);
  if (opened && opened->borrow() < 3) return base::duplicate(opened->borrow());
  return opened;
}

}  // namespace

base::Result<OuterTerminal> OuterTerminal::open(int fd) {
  // A description of our own: O_NONBLOCK and the lock must not be shared with a shell.
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_NONBLOCK;
  if (auto own = open_high("/proc/self/fd/" + std::to_string(fd), kFlags)) {
    struct stat info {};
    // The inode of /dev/tty is everybody's: a lock of it would hold all terminals.
    const bool is_lockable = ::fstat(own->borrow(), &info) == 0 && info.st_rdev != makedev(5, 0);
    return OuterTerminal(std::move(*own), false, is_lockable);
  }
  // Another user's, after su(1).
  if (base::is_controlling(fd)) {
    if (auto own = open_high("/dev/tty", kFlags)) {
      return OuterTerminal(std::move(*own), false, false);
    }
  }
  auto copy = base::duplicate(fd);
  if (!copy) return tl::unexpected<base::Error>(copy.error());
  return OuterTerminal(std::move(*copy), true, false);
}

bool OuterTerminal::hold() {
  return !is_lockable_ || ::flock(fd(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

namespace {

/// In a group of its own, so that what kills its parent's group spares it; background groups may
/// change a terminal whose SIGTTOU they block. Keeps nothing of its parent open but these two.
[[noreturn]] void stand_guard(int parent, int terminal, const base::Termios& raw,
                              const base::Termios& saved) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "airlock-tty");
  const int highest = parent > terminal ? parent : terminal;
  const int kept_terminal = ::fcntl(terminal, F_DUPFD_CLOEXEC, highest + 1);
  const int kept_parent = ::fcntl(parent, F_DUPFD_CLOEXEC, highest + 1);
  const int first = kept_terminal < kept_parent ? kept_terminal : kept_parent;
  const int last = kept_terminal < kept_parent ? kept_parent : kept_terminal;
  ::syscall(SYS_close_range, 0, first - 1, 0);
  if (last > first + 1) ::syscall(SYS_close_range, first + 1, last - 1, 0);
  ::syscall(SYS_close_range, last + 1, ~0u, 0);
  char byte = 0;
  while (::read(kept_parent, &byte, 1) < 0 && errno == EINTR) {
  }
  if (base::termios_of(kept_terminal) == raw) base::set_termios(kept_terminal, saved);
  _exit(0);
}

}  // namespace

bool OuterTerminal::enter_raw() {
  if (saved_) return true;
  saved_ = base::termios_of(fd());
  if (!saved_) return false;
  raw_ = base::to_raw(*saved_);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == 0) {
    const base::UniqueFd read_end(ends[0]);
    guard_pipe_.reset(ends[1]);
    // No exit signal: the program is not to hear of a SIGCHLD that is not its own.
    guard_ = static_cast<pid_t>(::syscall(SYS_clone, 0, 0, 0, 0, 0));
    if (guard_ == 0) {
      guard_pipe_.reset();  // else it would wait for itself
      stand_guard(read_end.borrow(), fd(), raw_, *saved_);
    }
    if (guard_ > 0) ::setpgid(guard_, guard_);
  }
  return base::set_termios(fd(), raw_);
}

void OuterTerminal::release(const std::optional<base::Termios>& settled) {
  if (!fd_) return;
  if (is_raw()) base::set_termios(fd(), settled ? *settled : *saved_);
  saved_.reset();
  if (guard_ > 0) {
    ::kill(guard_, SIGKILL);
    ::waitpid(guard_, nullptr, __WALL);
    guard_ = -1;
  }
  guard_pipe_.reset();
  if (is_lockable_) ::flock(fd(), LOCK_UN);
}

}  // namespace wire
