#pragma once

#include <nlohmann/json_fwd.hpp>

#include "routerd/daemon.h"

namespace routerd {

/// Makes the two contexts of `airlock run` from its request:
/// {in, routeTo, agent, cwd, userEnv: ["K=V"], share: [], hide: []}.
base::Result<void> embed(Daemon& daemon, const nlohmann::json& body);

}  // namespace routerd
