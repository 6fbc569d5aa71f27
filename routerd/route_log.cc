#include "routerd/route_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace routerd {

// Without the arguments: this is for everybody who may ask.
nlohmann::json to_json(const RouteRecord& record) {
  return {{"serial", record.serial},
          {"timeMs", record.time_ms},
          {"job", record.job},
          {"pid", record.pid},
          {"uid", record.uid},
          {"from", record.from},
          {"to", record.to},
          {"program", record.program},
          {"outcome", record.outcome},
          {"rule", record.rule},
          {"reason", record.reason},
          {"enforce", record.enforce},
          {"caughtBy", record.caught_by},
          {"latencyUs", record.latency_us},
          {"blockedEnv", record.blocked_env},
          {"refusedFds", record.refused_fds}};
}

void RouteLog::add(RouteRecord record) {
  record.serial = next_serial_++;
  records_.push_back(std::move(record));
  if (records_.size() > kKept) records_.pop_front();
  const auto followers = followers_;  // a follower may unfollow itself
  for (const auto& [number, follower] : followers) follower(records_.back());
}

void RouteLog::add_failure(std::uint64_t job, std::string reason) {
  const auto found = std::find_if(records_.rbegin(), records_.rend(),
                                  [job](const RouteRecord& record) { return record.job == job; });
  if (found == records_.rend()) return;
  RouteRecord failed = *found;
  failed.outcome = "failed";
  failed.reason = std::move(reason);
  add(std::move(failed));
}

std::uint64_t RouteLog::follow(Follower follower) {
  followers_.emplace(next_follower_, std::move(follower));
  return next_follower_++;
}

}  // namespace routerd
