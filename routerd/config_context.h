#pragma once

// The `contexts` part of the configuration file: its keys and what each one takes.

#include "routerd/config.h"
#include "routerd/config_reader.h"

namespace routerd {

/// Reads the map of contexts over those that `config` has. Which contexts they name is noted in the
/// reader's references, and not checked here.
void read_contexts(ConfigReader& reader, const Field& field, Config& config);

}  // namespace routerd
