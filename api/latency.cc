#include "api/latency.h"

#include <algorithm>
#include <numeric>

namespace api {

void Histogram::add(std::chrono::nanoseconds took) {
  const auto* bucket = std::ranges::lower_bound(kLimits, took);
  if (bucket != kLimits.end()) ++buckets_[static_cast<std::size_t>(bucket - kLimits.begin())];
  ++count_;
  sum_ += took;
}

std::uint64_t Histogram::up_to(std::size_t index) const {
  const auto end = buckets_.begin() + static_cast<std::ptrdiff_t>(index) + 1;
  return std::accumulate(buckets_.begin(), end, std::uint64_t{0});
}

}  // namespace api
