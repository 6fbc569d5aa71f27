#pragma once

#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "base/terminal.h"
#include "base/unique_fd.h"

namespace wire {

/// The terminal a requester was started on, while bytes are relayed between it and another one. At
/// most one requester at a time holds it, so that what is typed has one reader. Its settings come
/// back on every way out: when this process is killed, a guard process puts them back.
class OuterTerminal {
 public:
  /// `fd` is a terminal; borrowed, and not used any more. EBADF and the like: it cannot be kept.
  static base::Result<OuterTerminal> open(int fd);
  OuterTerminal(OuterTerminal&&) = default;
  OuterTerminal& operator=(OuterTerminal&&) = delete;
  ~OuterTerminal() { release(); }

  /// Reads and writes; non-blocking unless is_blocking().
  int fd() const { return fd_.borrow(); }
  /// Where it could not be opened anew its description is shared: O_NONBLOCK would be everybody's.
  bool is_blocking() const { return is_blocking_; }
  bool is_controlling() const { return base::is_controlling(fd()); }

  /// Job control lets this process read it: it is in the foreground, or belongs to another session.
  bool may_read() const { return !is_controlling() || base::is_foreground(fd()); }
  /// False if another requester holds it.
  bool hold();
  /// Raw mode, and a guard. False: the terminal is gone.
  bool enter_raw();
  /// True while nobody has changed that.
  bool is_raw() const { return saved_ && base::termios_of(fd()) == raw_; }
  /// Raw mode and hold end; the settings become `settled`, or what they were. Not if somebody else
  /// has changed them meanwhile: then they are his.
  void release(const std::optional<base::Termios>& settled = {});

 private:
  OuterTerminal(base::UniqueFd fd, bool is_blocking, bool is_lockable)
      : fd_(std::move(fd)), is_blocking_(is_blocking), is_lockable_(is_lockable) {}

  base::UniqueFd fd_;
  bool is_blocking_ = false;
  bool is_lockable_ = false;
  std::optional<base::Termios> saved_;
  base::Termios raw_;
  pid_t guard_ = -1;
  base::UniqueFd guard_pipe_;
};

}  // namespace wire
