#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contexts/env_filter.h"
#include "contexts/limits.h"
#include "contexts/mechanism.h"
#include "contexts/tier.h"

namespace contexts {

enum class Isolation { secure, strict, none };
/// What a context's programs change in the system's folders (contexts/system_folders.h) is the
/// context's own, or everybody's. Automatic: its own where Host::own_rootfs says so, the tier has
/// mounts, there is a disk to keep it on, and it runs no agents, which would not see what their
/// children install.
enum class Rootfs { automatic, overlay, shared };
enum class RouteChild { automatic, always, never };
enum class RuleAction { here, route, refuse };
/// How its programs get a requester's terminal: given as a whole where that can be, else a new one
/// that is relayed to; always a new one; or its descriptor (whose holder can read what is typed).
enum class Terminals { automatic, relay, share };

/// One of a context's own routing rules, tried in order.
struct RouteRule {
  /// fnmatch(3) pattern of the program's absolute path.
  std::string program;
  RuleAction action = RuleAction::route;
  /// Target of action route; empty = the context's child_context.
  std::string to;
  bool operator==(const RouteRule&) const = default;
};

struct UserIds {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// What a context is to be. Pure data; validate() tells what is wrong with it.
struct ContextSpec {
  std::string name;
  /// Where its children run; empty = children run in the same context, unrouted.
  std::string child_context;
  RouteChild route_child = RouteChild::automatic;
  /// What keeps its agents' children from running unrouted.
  Enforce enforce;
  Isolation isolation = Isolation::secure;
  Rootfs rootfs = Rootfs::automatic;
  /// Working directory of programs that come without one; absolute.
  std::string cwd = "/";
  /// Env of its programs: pinned names, filter lists, base.
  EnvPolicy env;
  /// HOME of the platform that is replaced by a folder of the context's own; empty = not replaced.
  std::string home;
  /// Below `home`, visible in the context all the same. Absolute.
  std::vector<std::string> share;
  /// Folders covered by an empty one. Absolute.
  std::vector<std::string> hide;
  /// Files and folders that its programs can only read, whatever their owner and mode. Absolute.
  std::vector<std::string> protect;
  std::vector<RouteRule> routes;
  Limits limits;
  /// Contexts whose non-root callers may become the user named by `user` when that is root.
  std::vector<std::string> allow_root_from;
  /// User name or uid its programs run as; empty = the caller's.
  std::string user;
  /// What `user` stands for; the daemon looks it up.
  std::optional<UserIds> user_ids;
  /// Pass only descriptors 0, 1 and 2.
  bool stdio_only = false;
  Terminals terminals = Terminals::automatic;
  /// Command texts run in its shell `default` unless somebody says otherwise.
  bool persistent = true;
  /// Its programs reach the HTTP API by a socket of its own. Nothing: unless it has a
  /// `child_context`, as an exec asked for there is not routed.
  std::optional<bool> api_socket;
  /// Runs with all of the daemon's capabilities and the platform's view (agents' own context).
  bool is_platform = false;
  /// The control plane's, named "control", which no other context may be.
  bool is_control = false;
};

/// [a-z][a-z0-9_-]{0,31}, as contexts and shells are called.
bool is_name(std::string_view name);
/// The same in words, after "expected".
constexpr const char* kNameRule = "a lower-case letter, then up to 31 of a-z 0-9 _ -";

/// A name, and not "control".
bool is_valid_name(std::string_view name);

/// EINVAL with what is wrong and what was expected.
base::Result<void> validate(const ContextSpec& spec);

}  // namespace contexts
