#pragma once

#include <string>

namespace bench {

/// Tables about services: how soon they are ready, what clients notice when one is killed, and the
/// memory of it all. Moves this process to a network namespace of its own; says so if it cannot.
void measure_services(const std::string& folder);

/// The service that is measured: answers each connection on descriptor 3 with a byte. Never
/// returns.
[[noreturn]] void serve_forever();

}  // namespace bench
