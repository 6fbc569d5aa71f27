#pragma once

#include "base/result.h"
#include "wire/message.h"

namespace contexts::init {

/// Builds this process's mount namespace as `setup` says and leaves the old one behind: private
/// mounts, HOME and hidden folders covered, pivot_root, the parent's /proc detached, an own /proc,
/// /dev/shm, /dev/mqueue and /dev/pts. Error::operation names the step that failed. What this
/// tier could not do but can live without is appended to `lacks`.
base::Result<void> build_mounts(const wire::Setup& setup, wire::StringList& lacks);

}  // namespace contexts::init
