#pragma once

#include <string>

#include "base/result.h"

namespace contexts::init {

/// Mounts a procfs of this process's PID namespace on `target` and verifies that it is one.
base::Result<void> mount_own_proc(const std::string& target);

/// Detaches every procfs of `mountinfo` (proc(5)), those of the parent, and mounts an own one on
/// /proc. EEXIST if one of the parent's is left anywhere: whoever makes a user namespace could
/// mount a fresh procfs then, with the machine's knobs in it (mount_too_revealing, fs/namespace.c).
base::Result<void> replace_proc(const std::string& mountinfo);

}  // namespace contexts::init
