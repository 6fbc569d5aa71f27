#pragma once

// Who started a process, as /proc tells it. Racy by nature: a process may end at any time.

#include <sys/types.h>

#include <string>
#include <vector>

#include "routerd/routing.h"

namespace routerd {

/// proc(5); 0 if the process is gone.
pid_t parent_of(pid_t pid);

/// The executable `pid` runs, unknown if it is gone.
FileId executable_of(pid_t pid);

/// The first value of the variable `name` in the environments that the ancestors of `pid` were
/// started with, nearest first, up to (not including) `top`. Empty if none has it.
std::string inherited_variable(pid_t pid, pid_t top, std::string_view name);

/// True if the nearest ancestor of `pid` is a file of `agent`, or `init`'s spawner: then `pid` is
/// the launched process itself, about to exec in place.
bool is_started_by(const AgentIdentity& agent, pid_t pid, pid_t init);

}  // namespace routerd
