#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/init/id_map.h"
#include "wire/message.h"

namespace contexts::init {

/// Lays an overlay (kernel documentation, filesystems/overlayfs) over each of kSystemFolders
/// below setup.root_dir, where this process's root is bound already: what is changed there goes to
/// setup.upper_dir. Mounts of their own in these folders, kSharedFolders and setup.same stay the
/// real ones; a system folder that is a mount of its own does, too, and `ready.lacks` says so.
/// kPinnedPaths become mount points. With `ids` the overlays' files have shifted owners.
///
/// Gives the folders that have an overlay. Where upper_dir's file system cannot be an upper layer,
/// the layers are kept in memory; or, without setup.upper_in_memory, there is none, which
/// `ready.lacks` and `ready.shares_root` tell.
base::Result<std::vector<std::string>> mount_overlays(const wire::Setup& setup, const IdMap& ids,
                                                      wire::Ready& ready);

}  // namespace contexts::init
