#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace routerd {

/// The request to the HTTP API that a program was asked for by, as the API tells it.
struct ApiRequest {
  std::string operation;  ///< as in openapi.json; empty: it was not the API that asked
  std::string exec;       ///< the API's id of what it started; empty: it has none
  std::string token;      ///< its name
  std::string client;     ///< an address, or whose door it came by
  std::string id;
  std::string traceparent;  ///< empty: it had none
};

/// One decision. Never holds values of variables.
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
  /// "run_in", "run_here", "refuse"; "failed": decided as run_in, but the context could not start
  /// it.
  std::string outcome;
  std::string rule;
  std::string reason;
  /// What enforces routing for the agent that asked, or that was started: "farm", "preload", …;
  /// empty for a program that is no agent.
  std::string enforce;
  /// What saw the exec: "interposer", "farm", …; empty for requests of the control socket.
  std::string caught_by;
  /// From the accepted connection to the hand-over, in microseconds.
  std::int64_t latency_us = 0;
  std::vector<std::string> blocked_env;
  /// For the audit log only: how many arguments, and what they are if that is recorded.
  std::uint32_t argc = 0;
  std::vector<std::string> argv;
  std::vector<std::string> refused_fds;
  /// For the audit log only.
  ApiRequest asked_by = {};
};

nlohmann::json to_json(const RouteRecord& record);

/// The last kKept decisions, and whoever follows them.
class RouteLog {
 public:
  static constexpr std::size_t kKept = 2000;
  using Follower = std::function<void(const RouteRecord&)>;

  void add(RouteRecord record);
  /// Adds a copy of the record of `job` with outcome "failed": it did not start where it was sent.
  /// Without effect if that record has been forgotten.
  void add_failure(std::uint64_t job, std::string reason);
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
