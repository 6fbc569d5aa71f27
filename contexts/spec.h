#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contexts/env_filter.h"
#include "contexts/tier.h"

namespace contexts {

enum class Isolation { secure, strict, none };
enum class RouteChild { automatic, always, never };
enum class RuleAction { here, route, refuse };

/// One of a context's own routing rules, tried in order.
struct RouteRule {
  /// fnmatch(3) pattern of the program's absolute path.
  std::string program;
  RuleAction action = RuleAction::route;
  /// Target of action route; empty = the context's child_context.
  std::string to;
};

/// What a context is to be. Pure data; validate() tells what is wrong with it.
struct ContextSpec {
  std::string name;
  /// Where its children run; empty = children run in the same context, unrouted.
  std::string child_context;
  RouteChild route_child = RouteChild::automatic;
  Isolation isolation = Isolation::secure;
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
  std::vector<RouteRule> routes;
  /// Contexts whose non-root callers may become the user named by `user` when that is root.
  std::vector<std::string> allow_root_from;
  /// User name or uid its programs run as; empty = the caller's.
  std::string user;
  /// Pass only descriptors 0, 1 and 2.
  bool stdio_only = false;
  /// Runs with all of the daemon's capabilities and the platform's view (agents' own context).
  bool is_platform = false;
};

/// [a-z][a-z0-9_-]{0,31}, and not "control".
bool is_valid_name(std::string_view name);

/// EINVAL with what is wrong and what was expected.
base::Result<void> validate(const ContextSpec& spec);

}  // namespace contexts
