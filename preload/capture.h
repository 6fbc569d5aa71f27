// Runs a command substitution through the routed shell and reads what it prints.
#pragma once

#include "preload/text.h"

namespace preload {

enum class Captured {
  output,      // also of a command that failed
  not_shell,   // /bin/sh cannot parse the command
  not_started  // no memory, no pipe, or the shell could not be spawned
};

enum class Errors { hidden, shown };  // hidden: the command's stderr is /dev/null

/// Appends the whole output of `/bin/sh -c command`, zero bytes left out. Blocks until it ends.
Captured capture(const char* command, Errors errors, Text& output);

}  // namespace preload
