#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/init/mount_table.h"

namespace contexts::init {

/// Mounts a procfs of this process's PID namespace on `target` and verifies that it is one.
base::Result<void> mount_own_proc(const std::string& target);

/// Detaches every procfs of `outer`, the parent's mounts, and mounts an own one on
/// /proc. EEXIST if one of the parent's is left anywhere: whoever makes a user namespace could
/// mount a fresh procfs then, with the machine's knobs in it (mount_too_revealing, fs/namespace.c).
base::Result<void> replace_proc(const std::vector<MountEntry>& outer);

}  // namespace contexts::init
