#include "contexts/limits.h"

#include <algorithm>

namespace contexts {

void lower_rlimits(wire::ProcessState& state, const std::vector<wire::Rlimit>& caps) {
  for (const auto& cap : caps) {
    const auto found =
        std::find_if(state.rlimits.begin(), state.rlimits.end(),
                     [&cap](const wire::Rlimit& limit) { return limit.resource == cap.resource; });
    if (found == state.rlimits.end()) {
      state.rlimits.push_back(cap);
    } else {
      found->soft = std::min(found->soft, cap.soft);
      found->hard = std::min(found->hard, cap.hard);
    }
  }
}

std::uint32_t pid_max_for(std::uint64_t pids) {
  constexpr std::uint64_t kReserved = 300;
  constexpr std::uint64_t kMost = 4 << 20;  // PID_MAX_LIMIT of linux/threads.h
  return static_cast<std::uint32_t>(std::min(kReserved + pids, kMost));
}

}  // namespace contexts
