#pragma once

// What is known about an AI agent, as data: profiles/NAME.yaml. docs/AGENTS.md tells what each key
// means. Pure but for load_profile.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "routerd/config.h"

namespace routerd {

/// "ps -p": a program of the system's folders, and options that must be among its arguments.
struct PidHelperRule {
  std::string program;
  std::vector<std::string> options;
};

enum class ServerAction { route, keep };

struct ServerRule {
  /// glob(7) of an absolute path, or one that starts with "~/" or "$NAME/".
  std::string program;
  ServerAction action = ServerAction::route;
};

struct AgentProfile {
  /// As of the file: NAME.yaml.
  std::string name;
  std::string title;
  std::string file;
  /// What it is called in PATH.
  std::vector<std::string> commands;
  /// fnmatch(3) patterns of the folders it is installed in ("*" matches slashes, too). What lies
  /// below one of them is the agent's.
  std::vector<std::string> packages;
  /// glob(7) patterns relative to the package: executables, and scripts, that are the agent itself.
  std::vector<std::string> runtimes;
  std::vector<std::string> scripts;
  /// Folders in which it keeps copies of itself. These and the next two: "/…", "~/…" or "$NAME/…".
  std::vector<std::string> copies;
  /// Folders below HOME that its children use, too; created when missing.
  std::vector<std::string> share;
  /// Folders that its children see empty.
  std::vector<std::string> hide;
  std::vector<PidHelperRule> pid_helpers;
  std::vector<ServerRule> servers;
  std::vector<std::string> pass_env;   ///< names or globs, see contexts::EnvFilter
  std::vector<std::string> block_env;  ///< names or globs
};

/// [a-z][a-z0-9_-]{0,31}
bool is_profile_name(std::string_view name);

/// Parses and validates; pure. On failure all errors, in the order of the file.
tl::expected<AgentProfile, std::vector<ConfigError>> parse_profile(std::string_view text,
                                                                   const std::string& name,
                                                                   const std::string& file_name);

/// The same for a file called NAME.yaml. Blocking. A file of another user than root and the
/// caller's, or one that anybody can write, is refused.
tl::expected<AgentProfile, std::vector<ConfigError>> load_profile(const std::string& path);

}  // namespace routerd
