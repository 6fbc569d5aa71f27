#pragma once

#include <nlohmann/json_fwd.hpp>

#include "routerd/daemon.h"

namespace routerd {

/// The context that `airlock run` makes for the children of `agents`, without what its options add.
/// Reads HOME and PATH.
contexts::ContextSpec children_context(const std::vector<Agent>& agents, const Profiles& profiles,
                                       const std::string& cwd);

/// Makes the two contexts of `airlock run` from its request:
/// {in, routeTo, agent: [argv], cwd, userEnv: ["K=V"], share: [], hide: []}.
base::Result<void> embed(Daemon& daemon, const nlohmann::json& body);

}  // namespace routerd
