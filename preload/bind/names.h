// Async-signal-safe: no allocation, no locks, no stdio.
//
// Pure: which ports are the service's, as routerd writes them to its environment.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace preload::bind {

enum class Protocol : uint8_t { tcp = 0, udp = 1 };

/// Is `port` in `list`, as "tcp:8080,udp:53"? `list` may be nullptr. What is not of that form
/// matches nothing.
bool names_port(const char* list, Protocol protocol, uint16_t port);

/// The value of a variable of `environment`, which ends with nullptr; nullptr if it is not there.
/// Not getenv(3): that is not promised to be async-signal-safe.
const char* value_of(char** environment, const char* name);

}  // namespace preload::bind
