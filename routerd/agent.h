#pragma once

// An agent as it is found on this machine: what its program is, which of its files are itself, and
// what its profile means here.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contexts/spec.h"
#include "routerd/profiles.h"
#include "routerd/program.h"
#include "routerd/routing.h"

namespace routerd {

/// A file that is the agent itself.
struct AgentFile {
  std::string path;  ///< resolved
  FileId id;
  bool is_static = false;  ///< of a runtime: the interposer cannot be loaded into it
};

struct Agent {
  Program program;
  /// nullptr: none matches; then it is the program alone.
  std::shared_ptr<const AgentProfile> profile;
  /// Folders the agent is installed in; resolved.
  std::vector<std::string> packages;
  std::vector<AgentFile> runtimes;
  std::vector<AgentFile> scripts;
  std::vector<PidHelper> helpers;
  std::vector<ServerFile> servers;
  /// Of the profile, with "~" and "$NAME" replaced; those of unset variables are left out.
  std::vector<std::string> copies;
  std::vector<std::string> share;
  std::vector<std::string> hide;

  /// Some part of it is statically linked: the interposer alone does not see what that starts.
  bool has_static_part() const;
  /// Path of that part, empty if there is none.
  std::string static_part() const;
};

/// Finds the profile of `program`, which runs with `argv` in `cwd`, and looks up on this machine
/// what it names. `env` is what the agent starts with: HOME and variables of paths. `node SCRIPT`
/// is that script if a profile knows it. Blocking (file system only).
Agent examine_agent(Program program, const std::vector<std::string>& argv, const std::string& cwd,
                    const Profiles& profiles, const contexts::Environment& env);

/// The agents of `profiles` that are found in the PATH of `env`.
std::vector<Agent> installed_agents(const Profiles& profiles, const contexts::Environment& env);

/// What stays with the agent: copies and package scripts only in folders that `is_safe`, those that
/// none of the contexts its children run in can write.
AgentIdentity identity_of(const Agent& agent,
                          const std::function<bool(const std::string&)>& is_safe);

/// True if programs of `context` cannot change what lies at the absolute `path`: it is in a HOME
/// that is not theirs, hidden, or protected. Pure.
bool is_out_of_reach(const contexts::ContextSpec& context, const std::string& path);

/// The path that a profile's "/…", "~/…" or "$NAME/…" means, empty if HOME or the variable is unset
/// or relative.
std::string expand_place(const std::string& place, const contexts::Environment& env);

}  // namespace routerd
