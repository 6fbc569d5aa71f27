#pragma once

#include <spdlog/common.h>

#include "routerd/config.h"
#include "routerd/daemon.h"

namespace routerd {

/// The contexts of a configuration, in the order of their names.
std::vector<contexts::ContextSpec> specs_of(const Config& config);

/// Empty if `tier` is what the configuration requires; else what is missing and what to do.
std::string missing_tier(const Config& config, contexts::Tier tier);

spdlog::level::level_enum spdlog_level(LogLevel level);

/// Creates them all; the predefined ones can be claimed by a later `ctx create`.
base::Result<void> create_configured(Daemon& daemon, const Config& config);

}  // namespace routerd
