#pragma once

#include <vector>

#include "base/unique_fd.h"
#include "routerd/farm_plan.h"
#include "routerd/hosted_context.h"
#include "wire/message.h"

namespace routerd {

/// What is sent with an agent's Spawn.
struct Confined {
  wire::Confinement order;
  /// Those of `order`, in its order.
  std::vector<base::UniqueFd> fds;
  /// Files of covered folders that the agent finds as they are.
  std::vector<std::string> kept;
};

/// Makes `agent` one whose children can only be routed, by the shim farm of `context`: covers what
/// it needs covered, collects what it may execute. Blocking: about 1 ms, and 5 us for each program
/// of a folder that is covered for the first time.
base::Result<Confined> confine_by_farm(HostedContext& context, const Agent& agent,
                                       const FarmSite& site);

/// The file at `path`, in this process's view, for a stub to exec: O_PATH. Nothing for a script,
/// which has to be executed by name, and for what is not a file.
base::UniqueFd open_program(const std::string& path);

}  // namespace routerd
