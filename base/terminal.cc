#include "base/terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"

namespace base {
namespace {

// Numbers of Documentation/admin-guide/devices.txt.
const dev_t kDevTty = makedev(5, 0);
const dev_t kDevPtmx = makedev(5, 2);
constexpr unsigned kFirstSlaveMajor = 136;
constexpr unsigned kLastSlaveMajor = 143;

struct stat device_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISCHR(info.st_mode)) info.st_mode = 0;
  return info;
}

bool is_device(const struct stat& info) { return info.st_mode != 0; }

/// The terminal's own number, for one opened as /dev/tty too.
std::optional<dev_t> terminal_number(int fd) {
  unsigned number = 0;
  if (::ioctl(fd, TIOCGDEV, &number) != 0) return {};
  // As the kernel's new_encode_dev() packs it.
  return makedev((number & 0xfff00) >> 8, (number & 0xff) | ((number >> 12) & 0xfff00));
}

}  // namespace

std::optional<Termios> termios_of(int fd) {
  Termios termios;
  if (::ioctl(fd, TCGETS, &termios) != 0) return {};
  return termios;
}

bool set_termios(int fd, const Termios& termios) { return ::ioctl(fd, TCSETS, &termios) == 0; }

Termios to_raw(Termios termios) {  // cfmakeraw(3)
  termios.input &=
      ~unsigned(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON | IXOFF);
  termios.output &= ~unsigned(OPOST);
  termios.local &= ~unsigned(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
  termios.control = (termios.control & ~unsigned(CSIZE | PARENB)) | CS8;
  termios.characters[VMIN] = 1;
  termios.characters[VTIME] = 0;
  return termios;
}

bool is_terminal(int fd) { return is_device(device_of(fd)) && termios_of(fd).has_value(); }

bool is_pty_master(int fd) {
  const auto info = device_of(fd);
  return is_device(info) && info.st_rdev == kDevPtmx;
}

bool is_pty_slave(int fd) {
  if (is_pty_master(fd)) return false;
  const auto number = terminal_number(fd);
  return number && major(*number) >= kFirstSlaveMajor && major(*number) <= kLastSlaveMajor;
}

bool is_same_terminal(int one, int other) {
  const auto first = device_of(one), second = device_of(other);
  if (!is_device(first) || !is_device(second)) return false;
  if (first.st_rdev != kDevTty && second.st_rdev != kDevTty) {
    // Each devpts counts from 0: the number alone does not tell.
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }
  const auto number = terminal_number(one);
  return number && number == terminal_number(other) && !is_pty_master(one) && !is_pty_master(other);
}

bool leads_session_of(int fd) {
  pid_t session = 0;
  return ::ioctl(fd, TIOCGSID, &session) == 0 && session == ::getpid() && !is_pty_master(fd);
}

bool is_controlling(int fd) {
  pid_t session = 0;
  return ::ioctl(fd, TIOCGSID, &session) == 0 && !is_pty_master(fd);
}

bool is_foreground(int fd) {
  pid_t group = 0;
  return ::ioctl(fd, TIOCGPGRP, &group) == 0 && group == ::getpgrp();
}

winsize winsize_of(int fd) {
  winsize size{};
  (void)::ioctl(fd, TIOCGWINSZ, &size);
  return size;
}

Result<Pty> open_pty() {
  Pty pty;
  pty.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.master) return os_error("open /dev/ptmx");
  const int locked = 0;
  if (::ioctl(pty.master.borrow(), TIOCSPTLCK, &locked) != 0) return os_error("TIOCSPTLCK");
  // Not by its name: that need not lead to this devpts.
  pty.slave.reset(::ioctl(pty.master.borrow(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return os_error("open the other end of a pseudoterminal");
  return pty;
}

}  // namespace base
