#pragma once

#include "routerd/config_reader.h"

namespace routerd {

/// Reads `api:`; once for a file, after `services:` or before.
void read_api(ConfigReader& reader, const Field& field, Config& config);

/// Adds the service that serves the API, if one is wanted, to the others.
void add_api_service(ConfigReader& reader, Config& config);

}  // namespace routerd
