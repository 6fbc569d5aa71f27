#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "contexts/context.h"

namespace routerd {

class Daemon;

// Verbs about what the network shows of contexts (docs/PROTOCOL.md, 10).

/// `whois`. EINVAL: not two addresses with ports.
base::Result<nlohmann::json> tell_origin(Daemon& daemon, const nlohmann::json& body);

/// `ctx.ports`, of all or of one `port`.
base::Result<nlohmann::json> list_ports(const contexts::Context& context,
                                        const nlohmann::json& body);

}  // namespace routerd
