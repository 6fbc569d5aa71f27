#pragma once

#include <string>
#include <string_view>

#include "base/terminal.h"

// What a terminal's line discipline makes of bytes (termios(3)); pure.
namespace wire {

/// Finds the characters that make the kernel send a signal.
class TypedSignals {
 public:
  /// The last SIGINT or SIGQUIT that `bytes` stand for on a terminal with these settings, or 0.
  /// Remembers across calls whether the next character is quoted (VLNEXT).
  int find(std::string_view bytes, const base::Termios& settings);

 private:
  bool is_quoted_ = false;
};

/// Takes back what ONLCR has done: for output that has been through one terminal and goes through
/// another that will do it again.
class NewlineRestorer {
 public:
  /// "\r\n" becomes "\n". A final '\r' is kept back until its successor is known.
  std::string restore(std::string_view bytes);
  /// What was kept back.
  std::string rest();

 private:
  bool has_return_ = false;
};

}  // namespace wire
