#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "wire/channel.h"
#include "wire/requester.h"

namespace bench {

/// execv(3) in a child of fork(2). Status 127 if that fails.
[[noreturn]] void become(const std::vector<std::string>& argv);

/// Runs a program to its end; its wait status.
int run_command(const std::vector<std::string>& argv);

/// Ends the tables that are being made: throws std::runtime_error unless `is_so`.
void require(bool is_so, const std::string& what);

/// A control verb on the daemon's socket. Ends this process if it fails.
nlohmann::json ask(int socket, const nlohmann::json& request);

/// Moves this process to a network namespace of its own, with a loopback. False: it may not.
bool enter_own_network();

/// A field of /proc/PID/smaps_rollup, KiB; 0 if there is none.
long memory_kib(int pid, const std::string& field);

/// PSS of a context's init and of the spawner it forked, KiB.
long context_pss_kib(int init);

}  // namespace bench
