#pragma once

#include <string>

namespace bench {

/// Tables about the HTTP API: execs, output, a terminal and memory, beside direct spawns, pipes and
/// terminals in the same run. Moves this process to a network namespace of its own; says so if it
/// cannot. False: something went wrong, and has been said.
bool measure_api(const std::string& folder);

}  // namespace bench
