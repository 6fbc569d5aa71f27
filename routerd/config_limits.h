#pragma once

#include "contexts/limits.h"
#include "routerd/config_reader.h"

namespace routerd {

/// The map `limits` of a context.
void read_limits(ConfigReader& reader, const Field& field, contexts::Limits& limits);

}  // namespace routerd
