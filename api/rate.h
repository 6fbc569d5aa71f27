#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "api/token_bucket.h"

namespace api {

/// How often each of many clients may do something: `per_second` in the long run, twice as many at
/// once. Pure: told what time it is. Knows kMostKnown clients; of more, those it has not seen for
/// longest start afresh.
class Rate {
 public:
  using Time = TokenBucket::Clock::time_point;
  static constexpr std::size_t kMostKnown = 4096;

  explicit Rate(double per_second) : per_second_(per_second) {}
  void set(double per_second) { per_second_ = per_second; }

  /// False if `client` has to wait.
  bool take(const std::string& client, Time now);

 private:
  void forget_old();

  double per_second_;
  std::map<std::string, TokenBucket> buckets_;
};

}  // namespace api
