#pragma once

#include "routerd/control_jobs.h"

namespace routerd {

/// `kill`: a signal to all processes of a context, or to all that a job has started, and who is
/// left. ESRCH: no such job; EINVAL: no such signal or scope.
void kill_in_scope(Daemon& daemon, HostedContext& hosted, const nlohmann::json& body,
                   const Reply& reply);

}  // namespace routerd
