#include "api/rate.h"

#include <algorithm>
#include <vector>

namespace api {

bool Rate::take(const std::string& client, Time now) {
  const double most = 2 * per_second_;
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMostKnown) forget_old();
    found = buckets_.emplace(client, TokenBucket(per_second_, most)).first;
  }
  found->second.set(per_second_, most);
  return found->second.try_take(now);
}

// Half of them, so that this is rare.
void Rate::forget_old() {
  std::vector<Time> times;
  for (const auto& [client, bucket] : buckets_) times.push_back(bucket.last_used());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(buckets_,
                [limit = *middle](const auto& each) { return each.second.last_used() <= limit; });
}

}  // namespace api
