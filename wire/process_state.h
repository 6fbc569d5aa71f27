#pragma once

#include "wire/message.h"

namespace wire {

/// What an exec of this process would keep (execve(2)): signals, umask, limits, priorities, timers.
ProcessState capture_process_state();

}  // namespace wire
