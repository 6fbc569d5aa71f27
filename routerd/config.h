#pragma once

// The configuration file (/etc/airlock/airlock.yaml): plain data, validated as a whole. Pure but
// for load_config. docs/airlock.example.yaml shows every key.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "contexts/env_filter.h"
#include "contexts/spec.h"
#include "routerd/api_config.h"
#include "routerd/audit/options.h"
#include "routerd/expiry.h"
#include "routerd/services/spec.h"

namespace routerd {

/// Which of a routed child's descriptors travel: all that may, or 0-2 only.
enum class PassedFds { all, stdio };

/// The least a context's tier must be. `isolated` is namespaces or userns.
enum class RequiredTier { isolated, namespaces, userns, uids, landlock, none };

enum class LogLevel { trace, debug, info, warn, error, off };

/// A context as configured. All paths are absolute and free of ".", ".." and NUL.
struct ContextConfig {
  std::string cwd = "/workspace";
  std::map<std::string, std::string> env;  ///< pinned variables
  std::string user;                        ///< name, or uid in digits; empty: the caller's
  std::string child_context;               ///< empty: none, otherwise a configured context
  /// Without `route_child` in the file: always if it gives `child_context`, else never; automatic
  /// for `platform` as long as the file gives neither.
  contexts::RouteChild route_child = contexts::RouteChild::never;
  contexts::Enforce enforce;  ///< nothing: the strongest that works
  contexts::Isolation isolation = contexts::Isolation::secure;
  contexts::Rootfs rootfs = contexts::Rootfs::automatic;
  std::vector<std::string> share;
  std::vector<std::string> hide;
  std::vector<std::string> pass_env;   ///< names or globs, see contexts::EnvFilter
  std::vector<std::string> block_env;  ///< names or globs
  PassedFds fds = PassedFds::all;
  contexts::Terminals tty = contexts::Terminals::automatic;
  bool persistent = true;  ///< `exec -c` runs in the shell `default`
  /// In order. `program` is an fnmatch(3) pattern that starts with '/', `to` configured or empty.
  std::vector<contexts::RouteRule> routes;
  contexts::Limits limits;
  Lifespan lifespan;                         ///< from the daemon's start on
  std::optional<bool> api_socket;            ///< nothing: unless it has a child_context
  std::vector<std::string> allow_root_from;  ///< contexts whose non-root callers may get uid 0 here
  bool operator==(const ContextConfig&) const = default;
};

struct Config {
  /// By name. `platform` and `user` are always there.
  std::map<std::string, ContextConfig, std::less<>> contexts;
  std::vector<std::string> secrets;  ///< values, each of at least contexts::kMinSecretSize bytes
  contexts::EnvPolicy::Base env_base = contexts::EnvPolicy::Base::clean;
  RequiredTier require_tier = RequiredTier::isolated;
  LogLevel log_level = LogLevel::info;
  std::string runtime_dir = "/run/airlock";
  std::vector<services::ServiceSpec> services;  ///< by name; no two hold the same port
  /// May contexts, and whoever else is on this machine, connect to the services' ports?
  bool control_reachable = true;
  ApiConfig api;  ///< its service is among `services`
  audit::Options audit;
  std::string log_dir;  ///< of services; empty: `log` in the runtime folder
};

/// One thing that is wrong. Never holds a secret or the value of a variable.
struct ConfigError {
  std::string file;
  int line = 0;    ///< from 1; 0: the file as a whole
  int column = 0;  ///< from 1, in bytes; 0 with line 0
  std::string message;

  /// "file:line:column: message", or "file: message" for the file as a whole. One line.
  std::string render() const;
};

using ConfigResult = tl::expected<Config, std::vector<ConfigError>>;

/// Longer files are refused. Bytes.
inline constexpr std::size_t kMaxConfigSize = 1024 * 1024;

/// The configuration of an empty file: contexts `platform` and `user`.
Config default_config();

/// Parses and validates; pure. `file_name` is only put into errors. On failure all errors, in the
/// order of the file (a syntax error hides those after it; at most 100).
ConfigResult parse_config(std::string_view text, const std::string& file_name);

/// The same for a file. Blocking. What cannot be read is one error with the errno's text.
ConfigResult load_config(const std::string& path);

}  // namespace routerd
