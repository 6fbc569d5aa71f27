#pragma once

#include <sys/ioctl.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

// Terminals by their ioctls (ioctl_tty(2)), past what the two C libraries make of them.
namespace base {

/// Settings as TCGETS has them (struct termios of asm-generic/termbits.h: x86_64 and aarch64). The
/// bits and the indices of `characters` are those of <termios.h>.
struct Termios {
  std::uint32_t input = 0;
  std::uint32_t output = 0;
  std::uint32_t control = 0;
  std::uint32_t local = 0;
  std::uint8_t line = 0;
  std::uint8_t characters[19] = {};
  bool operator==(const Termios&) const = default;
};
static_assert(sizeof(Termios) == 36);

/// Nothing if `fd` is no terminal.
std::optional<Termios> termios_of(int fd);
/// Acts at once (TCSETS). False: no terminal (any more). From a background group this stops the
/// caller unless it blocks or ignores SIGTTOU.
bool set_termios(int fd, const Termios& termios);
/// Every byte as it comes and goes: no echo, no line editing, no signals, no translation.
Termios to_raw(Termios termios);

/// True for both ends of a pseudoterminal, consoles and serial lines. Costs a system call only for
/// character devices.
bool is_terminal(int fd);
/// The side that emulates a terminal (/dev/ptmx).
bool is_pty_master(int fd);
/// The side that programs use, by whatever name it was opened. Not a console: its input comes from
/// a person's keyboard whoever leads its session.
bool is_pty_slave(int fd);
/// The same terminal under two descriptors. One opened as /dev/tty counts as what it stood for.
bool is_same_terminal(int one, int other);

/// True if this process leads the session whose controlling terminal `fd` is.
bool leads_session_of(int fd);
/// Whether `fd` is this process's controlling terminal.
bool is_controlling(int fd);
/// Whether this process's group is the foreground group of its controlling terminal `fd`.
bool is_foreground(int fd);

/// 0×0 where it is unknown.
winsize winsize_of(int fd);

struct Pty {
  UniqueFd master;
  UniqueFd slave;
};

/// A new pseudoterminal of the devpts that /dev/ptmx of this mount namespace stands for. Both ends
/// are close-on-exec and nobody's controlling terminal.
Result<Pty> open_pty();

}  // namespace base
