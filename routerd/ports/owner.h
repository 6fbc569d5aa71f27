#pragma once

#include <string>

#include "routerd/ports/spec.h"

namespace routerd::ports {

/// Who has a port of this network namespace: "pid 4711 (/usr/bin/python3.11)", several separated by
/// commas; a sentence about why it cannot be told if it cannot. Reads /proc/net and the descriptors
/// of every process that may be looked into: milliseconds, for error messages only.
std::string who_has(const PortKey& key);

}  // namespace routerd::ports
