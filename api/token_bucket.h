#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace api {

/// Lets through so much in a second, and `burst` at once. Pure: told what time it is.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  TokenBucket(double per_second, double burst) : rate_(per_second), burst_(burst), left_(burst) {}

  /// Takes `amount` now, more than there is if need be; how long to wait before taking more.
  std::chrono::milliseconds take(double amount, Clock::time_point now) {
    refill(now);
    left_ -= amount;
    if (left_ >= 0) return std::chrono::milliseconds(0);
    return std::chrono::milliseconds(1 + static_cast<std::int64_t>(-left_ / rate_ * 1000));
  }

  /// Takes one if there is one.
  bool try_take(Clock::time_point now) {
    refill(now);
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

  void set(double per_second, double burst) {
    rate_ = per_second;
    burst_ = burst;
  }
  Clock::time_point last_used() const { return last_; }

 private:
  void refill(Clock::time_point now) {
    const double passed = std::chrono::duration<double>(now - last_).count();
    if (last_ != Clock::time_point()) left_ += std::max(0.0, passed) * rate_;
    left_ = std::min(burst_, left_);
    last_ = now;
  }

  double rate_;
  double burst_;
  double left_;
  Clock::time_point last_{};
};

}  // namespace api
