#include "api/rate.h"

#include <algorithm>
#include <vector>

namespace api {

bool Rate::take(const std::string& client, Time now) {
  const double most = 2 * per_second_;
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMostKnown) forget_old();
    found = buckets_.emplace(client, Bucket{most, now}).first;
  }
  Bucket& bucket = found->second;
  const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(most, bucket.tokens + std::max(0.0, seconds) * per_second_);
  bucket.filled = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

// Half of them, so that this is rare.
void Rate::forget_old() {
  std::vector<Time> times;
  for (const auto& [client, bucket] : buckets_) times.push_back(bucket.filled);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(buckets_,
                [limit = *middle](const auto& each) { return each.second.filled <= limit; });
}

}  // namespace api
