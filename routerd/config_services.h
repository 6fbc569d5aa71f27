#pragma once

// The `services` and `control` parts of the configuration file.

#include "routerd/config.h"
#include "routerd/config_reader.h"

namespace routerd {

/// Reads the map of services into config.services, sorted by name.
void read_services(ConfigReader& reader, const Field& field, Config& config);

void read_control(ConfigReader& reader, const Field& field, Config& config);

/// What no key can judge alone: `control.reachable` against what services expose.
void check_services(ConfigReader& reader, const Config& config);

}  // namespace routerd
