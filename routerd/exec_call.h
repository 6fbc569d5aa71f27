#pragma once

#include <string>
#include <string_view>

#include "routerd/confinement.h"
#include "routerd/exec_router.h"

// What the parts of ExecRouter share: exec_router.cc takes and gives away requests, route_facts.cc
// looks at what is asked for, agent_launch.cc prepares agents, shell_exec.cc is for shells,
// file_exec.cc for files.
namespace routerd {

constexpr int kRefused = 126;
constexpr int kNotFound = 127;

/// One request while it is being decided.
struct ExecRouter::Call {
  wire::ExecRequest request;
  std::vector<base::UniqueFd> fds;
  base::UniqueFd connection;
  Peer peer;
  RouteRecord record;
  Clock::time_point accepted;
  /// Of an agent that is about to be started.
  Confined confined = {};
};

/// Since 1970.
std::int64_t real_time_ms();

/// `path` as seen from `cwd`.
std::string absolute(const std::string& cwd, std::string_view path);

/// The path as it is seen from here, for a process of another mount namespace.
std::string through_proc(pid_t pid, const std::string& path);

wire::StringList to_list(const contexts::Environment& env);

/// The environment with HOME changed from the platform's to the context's, where that is another
/// path. A HOME that somebody has chosen for this program stays.
wire::StringList with_own_home(const HostedContext& target, const wire::StringList& env);

}  // namespace routerd
