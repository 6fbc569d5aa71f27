#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace api {

/// How often something took how long: a histogram as Prometheus has it.
class Histogram {
 public:
  /// Upper limits of the buckets; what takes longer is in none. From a command in a warm shell
  /// (below 1 ms) to what clients wait for on purpose: an exec's end, `?waitMs=` (10 min at most).
  static constexpr std::array<std::chrono::microseconds, 15> kLimits = {
      std::chrono::microseconds(500),
      std::chrono::microseconds(1'000),
      std::chrono::microseconds(2'500),
      std::chrono::microseconds(5'000),
      std::chrono::microseconds(10'000),
      std::chrono::microseconds(25'000),
      std::chrono::microseconds(50'000),
      std::chrono::microseconds(100'000),
      std::chrono::microseconds(250'000),
      std::chrono::microseconds(500'000),
      std::chrono::seconds(1),
      std::chrono::seconds(5),
      std::chrono::seconds(15),
      std::chrono::seconds(60),
      std::chrono::seconds(600)};

  void add(std::chrono::nanoseconds took);
  std::uint64_t count() const { return count_; }
  std::chrono::nanoseconds sum() const { return sum_; }
  /// How many took no longer than kLimits[index].
  std::uint64_t up_to(std::size_t index) const;

 private:
  /// Not cumulated.
  std::array<std::uint64_t, kLimits.size()> buckets_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds sum_{0};
};

/// Times from the end of a request's head to the beginning of its answer, by kind of request. Of
/// bounded size: words are those of the table of routes, never a client's own.
class Latencies {
 public:
  struct Kind {
    std::string_view method;  ///< static
    std::string_view route;   ///< static: the path as in openapi.json
    unsigned hundreds;        ///< of the status: 2 for 204
    auto operator<=>(const Kind&) const = default;
  };
  void add(const Kind& kind, std::chrono::nanoseconds took) { kinds_[kind].add(took); }
  const std::map<Kind, Histogram>& kinds() const { return kinds_; }

 private:
  std::map<Kind, Histogram> kinds_;
};

}  // namespace api
