#pragma once

#include <algorithm>
#include <chrono>

namespace api {

/// Lets through so much in a second, and for a moment more. Pure.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  TokenBucket(double per_second, double burst) : rate_(per_second), burst_(burst), left_(burst) {}

  /// Takes `amount` now; how long to wait before taking more.
  std::chrono::milliseconds take(double amount, Clock::time_point now) {
    const double passed = std::chrono::duration<double>(now - last_).count();
    if (last_ != Clock::time_point()) left_ = std::min(burst_, left_ + passed * rate_);
    last_ = now;
    left_ -= amount;
    if (left_ >= 0) return std::chrono::milliseconds(0);
    return std::chrono::milliseconds(1 + static_cast<std::int64_t>(-left_ / rate_ * 1000));
  }

 private:
  double rate_;
  double burst_;
  double left_;
  Clock::time_point last_{};
};

}  // namespace api
