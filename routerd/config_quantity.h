#pragma once

// Durations and sizes as people write them in the configuration. Each failed read adds an error.

#include <chrono>
#include <cstdint>
#include <optional>

#include "routerd/config_reader.h"

namespace routerd {

/// "500ms", "10s", "2m", "1h"; at most 10⁹ of a unit.
std::optional<std::chrono::milliseconds> read_duration(ConfigReader& reader, const Field& field);

/// Bytes, or with K, M, G; at least `least`, which is a whole number of KiB.
std::optional<std::uint64_t> read_size(ConfigReader& reader, const Field& field,
                                       std::uint64_t least);

}  // namespace routerd
