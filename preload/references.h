// Temporary environment variables that stand for the output of command substitutions: a
// reference "${NAME}" is subject to the real wordexp's own rules, the output itself is not parsed.
#pragma once

#include "preload/text.h"

namespace preload {

class References {
 public:
  References() = default;
  References(const References&) = delete;
  References& operator=(const References&) = delete;
  /// Takes the variables out of the environment again.
  ~References();

  /// Adds a variable with `value` and appends "${NAME}" to `text`. False without memory.
  bool add(const char* value, Text& text);

  /// Puts the variables into the environment, late, so that no command sees them. Like wordexp
  /// itself not safe against threads that read or change the environment meanwhile.
  bool publish();

 private:
  struct Variable;
  Variable* first_ = nullptr;
};

}  // namespace preload
