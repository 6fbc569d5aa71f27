#include <sys/resource.h>

#include "contexts/context.h"

namespace contexts {

using base::Result;

/// Where no cgroup keeps it: by whatever else there is in this tier, or not at all.
Result<void> Context::keep_without_cgroup(const std::string& limit, std::uint64_t value) {
  const auto cap = [&](std::uint32_t resource, const char* by) -> Result<void> {
    rlimit_caps_.push_back({resource, value, value});
    kept_limits_.push_back({limit, value, by});
    return {};
  };
  if (limit == "pids" && is_isolated(tier_)) {
    pid_max_ = pid_max_for(value);
    kept_limits_.push_back({limit, value, "pid_max of its PID namespace, 300 above the limit"});
    return {};
  }
  if (limit == "pids" && lease_) return cap(RLIMIT_NPROC, "RLIMIT_NPROC of its own user id");
  if (limit == "memory") return cap(RLIMIT_DATA, "RLIMIT_DATA, for each process");
  const std::string reason = cgroups_.why_not(limit);
  return base::failure("limit '" + limit + "' cannot be kept here", ENOTSUP,
                       "it needs a writable cgroup" + (reason.empty() ? "" : ": " + reason));
}

Result<void> Context::settle_limits() {
  const Limits& limits = spec_.limits;
  if (limits == Limits{}) return {};
  cgroups_ = Cgroups::create(name(), limits);
  const std::pair<const char*, std::uint64_t> shared[] = {
      {"pids", limits.pids}, {"memory", limits.memory}, {"cpu", limits.cpu_hundredths}};
  for (const auto& [limit, value] : shared) {
    if (value == 0) continue;
    if (const auto by = cgroups_.keeps(limit); !by.empty()) {
      kept_limits_.push_back({limit, value, by});
    } else if (auto kept = keep_without_cgroup(limit, value); !kept) {
      return kept;
    }
  }
  if (limits.open_files != 0) {
    rlimit_caps_.push_back({RLIMIT_NOFILE, limits.open_files, limits.open_files});
    kept_limits_.push_back({"open_files", limits.open_files, "RLIMIT_NOFILE, for each process"});
  }
  if (limits.tmpfs != 0) {
    if (!is_isolated(tier_)) {
      return base::failure("limit 'tmpfs' cannot be kept here", ENOTSUP,
                           "contexts have a tmpfs of their own in the tiers namespaces and userns");
    }
    kept_limits_.push_back({"tmpfs", limits.tmpfs, "size of each tmpfs"});
  }
  if (limits.exec_time_ms != 0) {
    kept_limits_.push_back({"exec_time", limits.exec_time_ms, "its spawner's clock"});
  }
  return {};
}

// One of its own even if limits need none here: entering it takes the kernel some ms.
void Context::mark_sockets() {
  if (spec_.limits == Limits{}) cgroups_ = Cgroups::create(name(), {});
  cgroups_.mark_sockets();
}

bool Context::has_made(std::uint64_t cgroup, unsigned uid) const {
  if (lease_ && lease_.uid() == uid) return true;
  return cgroup != 0 && tier_ != Tier::none && cgroup == cgroups_.id();
}

}  // namespace contexts
