#pragma once

#include "routerd/config_reader.h"

namespace routerd {

/// The map `audit`.
void read_audit(ConfigReader& reader, const Field& field, Config& config);

}  // namespace routerd
