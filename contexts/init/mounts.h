#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/init/id_map.h"
#include "wire/message.h"

namespace contexts::init {

/// Builds this process's mount namespace as `setup` says and leaves the old one behind: private
/// mounts, HOME and hidden folders covered, pivot_root, the parent's /proc detached, an own /proc,
/// /dev/shm, /dev/mqueue and /dev/pts. Error::operation names the step that failed. What this
/// tier could not do but can live without is appended to `ready.lacks`.
/// With a farm its tmpfs is in `farm`, writable, or the reason why not in `ready`. With `ids` the
/// owners of all files are shifted.
base::Result<void> build_mounts(const wire::Setup& setup, const IdMap& ids, wire::Ready& ready,
                                base::UniqueFd& farm);

}  // namespace contexts::init
