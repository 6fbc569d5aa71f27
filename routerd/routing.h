#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contexts/spec.h"

// Where a program runs: pure, no I/O. Whoever asks gathers the facts first.
namespace routerd {

/// Identity of a file, and of its content: `changed` is its ctime in ns, which nobody can set back.
/// A zero inode is unknown, and equal to nothing that is known.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t changed = 0;
  bool is_known() const { return inode != 0; }
  bool is_same_file(const FileId& other) const {
    return device == other.device && inode == other.inode;
  }
  bool operator==(const FileId&) const = default;
};

/// A program that tells an agent about its own pids, which only its own context knows.
struct PidHelper {
  FileId id;
  /// All of them must be among its arguments.
  std::vector<std::string> options;
  std::string path = {};
};

/// A language or MCP server that an agent's profile names.
struct ServerFile {
  FileId id;
  /// Beside the agent; else where other children run.
  bool is_kept = false;
  std::string path = {};
};

/// An agent as it was found when it was launched: the files that stay with it when it runs them
/// again. All that a rule matches was captured then, or lies where its children cannot write.
struct AgentIdentity {
  /// The executable that runs in the end (an interpreter for a script), resolved.
  std::string executable;
  FileId executable_id;
  /// The script, empty if the agent is none.
  std::string script;
  /// Name of its profile, empty without one: then only the script's own `#!` launchers stay.
  std::string profile;
  /// Executables that are the agent itself.
  std::vector<FileId> runtimes;
  /// Scripts that are the agent when an interpreter of `launchers` runs them.
  std::vector<FileId> scripts;
  /// The interpreters of its `#!` lines, and env(1) where such a line names it.
  std::vector<FileId> launchers;
  FileId env;
  /// Folders of scripts that nobody but the platform can write; absolute, resolved.
  std::vector<std::string> packages;
  /// Folders in which it keeps copies of itself, out of reach for its children; absolute, resolved.
  std::vector<std::string> copies;
  std::vector<PidHelper> helpers;
  std::vector<ServerFile> servers;
};

/// What is known about one request to run a program.
struct RouteFacts {
  /// As the kernel would get it; absolute unless the caller's folder is unknown.
  std::string program;
  FileId program_id;
  /// Resolved path of the program; only needed where `agent.copies` may hold it.
  std::string resolved_program;
  FileId stub_id;
  std::vector<std::string_view> argv;
  /// The file that script_word() gives.
  FileId script_id;
  std::string resolved_script;
  /// The script whose `#!` line made the kernel start `program`; absolute, or empty.
  std::string script;
  AgentIdentity agent;
  /// The nearest ancestor of the program is a file of the agent.
  bool is_called_by_agent = true;
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
  /// Which rule decided: "child_context", "routes[2]", "claude:runtime", "stub-recursion", …
  std::string rule;
  /// For a refusal: why, one line.
  std::string reason;
};

/// Decides for a caller in the context `from`. Rules in order: the stub as target; the context's
/// own routes; the profile of the agent (servers, own files, helpers) and script launchers;
/// SANDBOX_ROUTE_TO_CONTEXT; child_context.
Decision decide(const contexts::ContextSpec& from, const RouteFacts& facts);

/// True for the scripts by which version managers stand in for a program (pyenv, nvm, …): what
/// such a script execs in place is the agent that was meant.
bool is_shim(const std::string& script);

/// The word of `argv` that is the script to be run, if `program` is a launcher of the agent and
/// only flags that bring no code of their own come before that word. Empty if there is none.
std::string_view script_word(const AgentIdentity& agent, const FileId& program,
                             const std::vector<std::string_view>& argv);

/// True if the absolute, resolved `path` lies in `folder` or below.
bool is_below(std::string_view path, std::string_view folder);

}  // namespace routerd
