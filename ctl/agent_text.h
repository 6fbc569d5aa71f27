#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ctl/commands.h"

namespace ctl {

/// Prints what airlock-routerd's doctor found out about an agent (routerd/agent_report.h). 0 if the
/// agent would run with its children routed, 1 if it would be refused.
int explain_agent(const Common& common, const std::vector<std::string>& command,
                  const nlohmann::json& report);

}  // namespace ctl
