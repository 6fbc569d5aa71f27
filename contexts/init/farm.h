#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/message.h"

namespace contexts::init {

/// Makes the tmpfs of the shim farm, between pivot_root and install_view: at `farm` of the view,
/// which programs will see read-only as RUNTIME_DIR/farm. Gives its root, writable, for routerd to
/// fill.
base::Result<base::UniqueFd> mount_farm(const wire::Setup& setup);

/// Shows the farm, read-only, below the view that is mounted at RUNTIME_DIR by now.
base::Result<void> show_farm(const wire::Setup& setup, int root);

/// From now on nothing in this PID namespace can be executed from a memfd (vm.memfd_noexec = 2,
/// Linux 6.6; 6.3 to 6.5 would refuse every memfd, so there as with none: ENOTSUP).
base::Result<void> forbid_executable_memfds();

}  // namespace contexts::init
