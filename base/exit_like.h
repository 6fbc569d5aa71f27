#pragma once

#include "base/wait_status.h"

namespace base {

/// Ends this process as `status` says: with the same exit code, or by the same signal with the
/// core size limited to 0 (a second core of the same death helps nobody). A signal that cannot
/// be died of gives exit code 128+N. Never returns.
[[noreturn]] void exit_like(WaitStatus status);

}  // namespace base
