#pragma once

#include <spdlog/common.h>

#include "routerd/config.h"
#include "routerd/daemon.h"

namespace routerd {

/// The contexts of a configuration, in the order of their names.
std::vector<contexts::ContextSpec> specs_of(const Config& config);

/// The weakest tier that satisfies `require_tier`.
contexts::Tier weakest_of(RequiredTier required);

spdlog::level::level_enum spdlog_level(LogLevel level);

/// Creates them all; the predefined ones can be claimed by a later `ctx create`.
base::Result<void> create_configured(Daemon& daemon, const Config& config);

/// Holds the ports of its services, before anything else is started. The error names the service,
/// and who has the port.
base::Result<void> hold_ports(Daemon& daemon, const Config& config);

/// Starts its services, and reads `file` again when the daemon is asked to reload.
base::Result<void> start_services(Daemon& daemon, const Config& config, const std::string& file);

}  // namespace routerd
