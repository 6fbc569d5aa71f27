#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "wire/channel.h"
#include "wire/requester.h"

namespace bench {

/// Runs a program to its end; its wait status.
int run_command(const std::vector<std::string>& argv);

/// A control verb on the daemon's socket. Ends this process if it fails.
nlohmann::json ask(int socket, const nlohmann::json& request);

/// A field of /proc/PID/smaps_rollup, KiB; 0 if there is none.
long memory_kib(int pid, const std::string& field);

/// PSS of a context's init and of the spawner it forked, KiB.
long context_pss_kib(int init);

}  // namespace bench
