// Async-signal-safe: no allocation, no locks, no stdio.
#pragma once

#include "preload/bind/names.h"

namespace preload::bind {

/// Asks routerd at the UNIX socket `path` for a port that is bound to `address`, 4 or 16 bytes: a
/// copy of the held socket, close-on-exec, or a negative errno. Waits at most kAnswerMs.
int ask_for_port(const char* path, Protocol protocol, uint16_t port, const void* address,
                 uint32_t size);

constexpr int kAnswerMs = 20'000;

}  // namespace preload::bind
