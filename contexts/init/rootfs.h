#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/init/id_map.h"
#include "wire/message.h"

namespace contexts::init {

/// Tier `namespaces`: makes at setup.root_dir what is to be this context's root, of the root this
/// process still has: the same mounts; with setup.upper_dir, overlays over the system's folders
/// (contexts/init/overlay.h); with setup.private_tmp, an empty /tmp and /var/tmp. Gives the folders
/// that have an overlay, whose files have shifted owners with `ids`; other mounts are left to the
/// caller. Unbindable (mount_namespaces(7)) afterwards: the caller makes it private. Errors name
/// what could not be mounted and what is needed.
base::Result<std::vector<std::string>> make_root(const wire::Setup& setup, const IdMap& ids,
                                                 wire::Ready& ready);

}  // namespace contexts::init
