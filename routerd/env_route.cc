#include "routerd/env_route.h"

namespace routerd {

EnvRoute::EnvRoute(From from, const contexts::EnvPolicy& policy)
    : from_(std::move(from)), pinned_(policy.pinned), filter_(policy, from_.agent_start_env) {}

const EnvRoute::Answer& EnvRoute::translate(const wire::StringList& child_env) {
  if (has_answer_ && child_env == last_child_env_) return answer_;
  const contexts::Environment child = child_env.strings();
  const auto composed = contexts::routed_environment({
      .invoker_env = from_.invoker_env,
      .agent_start_env = from_.agent_start_env,
      .child_env = child,
      .filter = filter_,
      .pinned = pinned_,
      .base = from_.base,
  });
  answer_ = {};
  for (const auto& entry : composed.env) answer_.env.add(entry);
  for (const auto& blocked : composed.blocked) {
    answer_.blocked.push_back(blocked.name + ": " +
                              std::string(contexts::to_string(blocked.reason)));
  }
  last_child_env_ = child_env;
  has_answer_ = true;
  return answer_;
}

}  // namespace routerd
