#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contexts/spec.h"

// Where a program runs: pure, no I/O. Whoever asks gathers the facts first.
namespace routerd {

/// Identity of a file; zero = unknown.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool is_known() const { return inode != 0; }
  bool operator==(const FileId&) const = default;
};

/// What an agent was started as, for its own re-execs.
struct AgentIdentity {
  /// The executable that runs in the end (an interpreter for a script).
  std::string executable;
  FileId executable_id;
  /// The script, empty if the agent is none.
  std::string script;
};

/// What is known about one request to run a program.
struct RouteFacts {
  /// As the kernel would get it; absolute unless the caller's folder is unknown.
  std::string program;
  FileId program_id;
  FileId stub_id;
  std::vector<std::string_view> argv;
  AgentIdentity agent;
  /// The caller is the launched process itself, about to exec in place. Only told for shims.
  bool is_launched_process = false;
  /// SANDBOX_ROUTE_TO_CONTEXT of the caller, or empty.
  std::string requested_context;
};

enum class Outcome { run_in, run_here, refuse };

struct Decision {
  Outcome outcome = Outcome::refuse;
  /// Target context of run_in.
  std::string context;
  /// Which rule decided: "child_context", "routes[2]", "agent:claude", "stub-recursion", …
  std::string rule;
  /// For a refusal: why, one line.
  std::string reason;
};

/// Decides for a caller in the context `from`. Rules in order: the stub as target; the context's
/// own routes; re-execs of known agents and script launchers; child_context.
Decision decide(const contexts::ContextSpec& from, const RouteFacts& facts);

/// An agent whose re-execs of its own executable stay where it is (docs/AGENTS.md). Generic
/// interpreters are never in this list: what they run is decided by their arguments.
struct KnownAgent {
  std::string_view name;
  /// fnmatch(3) pattern of the executable's resolved path.
  std::string_view executable;
  /// Folders below HOME that the agent and its children both use; created when missing.
  std::vector<std::string_view> shared_home;
};

const std::vector<KnownAgent>& known_agents();

/// True for the scripts by which version managers stand in for a program (pyenv, nvm, …): what
/// such a script execs in place is the agent that was meant.
bool is_shim(const std::string& script);

/// The known agent that `executable` or `script` (resolved paths) belongs to, or nullptr.
const KnownAgent* find_agent(const AgentIdentity& agent);

}  // namespace routerd
