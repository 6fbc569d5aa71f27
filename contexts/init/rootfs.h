#pragma once

#include "base/result.h"
#include "contexts/init/id_map.h"
#include "wire/message.h"

namespace contexts::init {

/// Tier `namespaces`: makes at setup.root_dir what is to be this context's root, of the root this
/// process still has. Shared: the same mounts. With setup.upper_dir an overlay over the root file
/// system (kernel documentation, filesystems/overlayfs), in which only mounts of their own and
/// setup.same are the real ones. Then, with setup.private_tmp, an empty /tmp and /var/tmp.
/// With `ids` the overlay's files have shifted owners; other mounts are left to the caller.
/// Unbindable (mount_namespaces(7)) afterwards: the caller makes it private. Errors name what could
/// not be mounted and what is needed.
base::Result<void> make_root(const wire::Setup& setup, const IdMap& ids, wire::StringList& lacks);

}  // namespace contexts::init
