#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/tier.h"

namespace contexts {

struct InitProcess {
  pid_t pid = -1;
  base::UniqueFd pidfd;
};

/// Starts `program` (an O_PATH descriptor) as PID 1 of new namespaces as `tier` says, with an empty
/// environment and `channel` as descriptor 3. The caller must be single-threaded. EPERM, ENOSPC,
/// EINVAL…: the namespaces are not to be had (clone(2)).
base::Result<InitProcess> clone_init(Tier tier, int program, int channel);

}  // namespace contexts
