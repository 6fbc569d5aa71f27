#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/spec.h"
#include "wire/message.h"

// Which terminals reach a program, and how. Whoever holds a terminal's descriptor can read what is
// typed there, so one that a platform session uses is replaced by a new one of the context, to
// which the requester relays (wire/relay.h). One that the requester's own session leads is given
// away as a whole; nobody else reads it then, and the kernel refuses if somebody does (TIOCSCTTY).
namespace routerd {

/// Settles `request.tty` by the target context's `policy`, and drops the terminals among `fds` that
/// do not travel, with their numbers. Returns what was refused, "N: why"; of those, 0 to 2 become
/// /dev/null. Masters of pseudoterminals are no terminals here.
std::vector<std::string> settle_terminals(contexts::Terminals policy, wire::ExecRequest& request,
                                          std::vector<base::UniqueFd>& fds);

}  // namespace routerd
