#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace routerd {

/// One decision. Never holds argv or values of variables.
struct RouteRecord {
  std::uint64_t serial = 0;
  /// CLOCK_REALTIME, ms.
  std::int64_t time_ms = 0;
  std::uint64_t job = 0;
  /// Who asked: pid in the daemon's namespace, and uid.
  int pid = 0;
  unsigned uid = 0;
  std::string from;
  std::string to;
  std::string program;
  /// "run_in", "run_here", "refuse".
  std::string outcome;
  std::string rule;
  std::string reason;
  /// From the accepted connection to the hand-over, in microseconds.
  std::int64_t latency_us = 0;
  std::vector<std::string> blocked_env;
  std::vector<std::string> refused_fds;
};

nlohmann::json to_json(const RouteRecord& record);

/// The last kKept decisions, and whoever follows them.
class RouteLog {
 public:
  static constexpr std::size_t kKept = 2000;
  using Follower = std::function<void(const RouteRecord&)>;

  void add(RouteRecord record);
  const std::deque<RouteRecord>& records() const { return records_; }
  /// Calls `follower` for every later record until unfollow() of the returned number.
  std::uint64_t follow(Follower follower);
  void unfollow(std::uint64_t number) { followers_.erase(number); }

 private:
  std::deque<RouteRecord> records_;
  std::map<std::uint64_t, Follower> followers_;
  std::uint64_t next_serial_ = 1;
  std::uint64_t next_follower_ = 1;
};

}  // namespace routerd
