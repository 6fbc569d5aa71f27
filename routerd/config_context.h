#pragma once

// The `contexts` part of the configuration file: its keys and what each one takes.

#include "routerd/config.h"
#include "routerd/config_reader.h"

namespace routerd {

/// Reads the map of contexts over those that `config` has. Which contexts they name is noted in the
/// reader's references, and not checked here.
void read_contexts(ConfigReader& reader, const Field& field, Config& config);

/// A map of variables. Errors quote names only.
std::map<std::string, std::string> read_env(ConfigReader& reader, const Field& field);

/// A user name, or a uid in digits.
std::optional<std::string> read_user(ConfigReader& reader, const Field& field);

}  // namespace routerd
