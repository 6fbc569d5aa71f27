#pragma once

// The environment of a routed child (design: "Env of a routed child"). Pure: values in, values out.

#include <span>
#include <string>
#include <vector>

#include "contexts/env_filter.h"

namespace contexts {

/// The environments a routed child's one is made of. Borrowed for the call.
struct RoutedEnvInput {
  std::span<const std::string> invoker_env;  ///< base: of who started the daemon or `airlock run`
  std::span<const std::string> agent_start_env;  ///< what the agent was started with
  std::span<const std::string> child_env;        ///< what the agent gave the child
  const EnvFilter& filter;                       ///< for the target context
  std::span<const std::string> pinned;           ///< EnvPolicy::pinned of the target context
  EnvPolicy::Base base = EnvPolicy::Base::clean;
};

/// A variable that was kept out, for the route log. Never holds a value.
struct BlockedName {
  std::string name;  ///< or "(withheld)", see EnvFilter::loggable_name
  Verdict reason;

  bool operator==(const BlockedName&) const = default;
};

struct RoutedEnvironment {
  Environment env;
  std::vector<BlockedName> blocked;  ///< each name once, in the order it was met
};

/// The environment for a routed child; later wins:
/// 1. base, from the invoker's through the filter: all of it, or only basic names;
/// 2. what the child's differs in from the agent's start environment, through the filter. A name
///    that the agent had and the child has not is removed. A change that the filter blocks has no
///    effect: the base's value stays, if there is one;
/// 3. `pinned`, unfiltered.
///
/// Order: names the child has, in its order; names of the base only; pinned ones. A name that
/// occurs more than once is one unit: all its entries are carried, or none if one of them is
/// blocked.
RoutedEnvironment routed_environment(const RoutedEnvInput& input);

}  // namespace contexts
