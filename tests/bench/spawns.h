#pragma once

#include <string>
#include <vector>

namespace bench {

/// libc's posix_spawn(3) and wait, past the interposer.
void spawn_direct(const std::vector<std::string>& argv);
/// The same through the interposer, where it is loaded.
void spawn_routed(const std::vector<std::string>& argv);

/// `rounds` of `spawn` of /bin/true, a line of microseconds each, on stdout.
int print_spawns(int rounds, void (*spawn)(const std::vector<std::string>&));

/// Direct against routed in turn, `rounds` each, for three programs. Runs as the agent.
void measure_latency(int rounds, const std::string& noop);
/// How many /bin/true `clients` processes start by `spawn` in a second, within `seconds`.
double spawns_per_second(int clients, double seconds,
                         void (*spawn)(const std::vector<std::string>&));
/// Spawns per second of 1, 4, 16 and 64 closed-loop clients. Runs as the agent.
void measure_clients(double seconds);

}  // namespace bench
