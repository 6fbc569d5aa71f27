#include "routerd/route_log.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using routerd::RouteLog;
using routerd::RouteRecord;

namespace {

RouteRecord record_of(const std::string& program) {
  RouteRecord record;
  record.program = program;
  return record;
}

}  // namespace

TEST_CASE("records are numbered in order", "[routerd]") {
  RouteLog log;
  log.add(record_of("a"));
  log.add(record_of("b"));
  REQUIRE(log.records().size() == 2);
  CHECK(log.records()[0].serial == 1);
  CHECK(log.records()[0].program == "a");
  CHECK(log.records()[1].serial == 2);
}

TEST_CASE("a job that could not be started has a second record", "[routerd]") {
  RouteLog log;
  RouteRecord record = record_of("a");
  record.job = 17;
  record.outcome = "run_in";
  log.add(record);
  log.add(record_of("b"));
  log.add_failure(17, "a: not found");
  log.add_failure(99, "unknown");
  REQUIRE(log.records().size() == 3);
  CHECK(log.records()[0].outcome == "run_in");
  CHECK(log.records()[2].serial == 3);
  CHECK(log.records()[2].program == "a");
  CHECK(log.records()[2].outcome == "failed");
  CHECK(log.records()[2].reason == "a: not found");
}

TEST_CASE("the log is bounded and forgets the oldest", "[routerd]") {
  RouteLog log;
  for (std::size_t i = 0; i < RouteLog::kKept + 10; ++i) log.add(record_of(std::to_string(i)));
  CHECK(log.records().size() == RouteLog::kKept);
  CHECK(log.records().front().program == "10");
  CHECK(log.records().front().serial == 11);
  CHECK(log.records().back().program == std::to_string(RouteLog::kKept + 9));
}

TEST_CASE("followers see every later record until they unfollow", "[routerd]") {
  RouteLog log;
  log.add(record_of("before"));
  std::string one, two;
  const auto first = log.follow([&](const RouteRecord& record) { one += record.program; });
  const auto second = log.follow([&](const RouteRecord& record) { two += record.program; });
  CHECK(first != second);
  log.add(record_of("a"));
  log.unfollow(first);
  log.add(record_of("b"));
  log.unfollow(second);
  log.unfollow(second);
  log.add(record_of("c"));
  CHECK(one == "a");
  CHECK(two == "ab");
}

TEST_CASE("a follower may unfollow itself while it is called", "[routerd]") {
  RouteLog log;
  std::uint64_t number = 0;
  int calls = 0;
  number = log.follow([&](const RouteRecord&) {
    ++calls;
    log.unfollow(number);
  });
  log.add(record_of("a"));
  log.add(record_of("b"));
  CHECK(calls == 1);
}

TEST_CASE("a record tells everything in JSON", "[routerd]") {
  RouteRecord record;
  record.serial = 1;
  record.time_ms = 1'700'000'000'123;
  record.job = 2;
  record.pid = 3;
  record.uid = 4;
  record.from = "platform";
  record.to = "user";
  record.program = "/bin/ls";
  record.outcome = "run_in";
  record.rule = "child_context";
  record.reason = "none";
  record.enforce = "farm";
  record.caught_by = "interposer";
  record.latency_us = 5;
  record.blocked_env = {"A_TOKEN: secret_name"};
  record.refused_fds = {"4: a folder"};
  CHECK(to_json(record) == nlohmann::json::parse(R"({
    "serial": 1, "timeMs": 1700000000123, "job": 2, "pid": 3, "uid": 4, "from": "platform",
    "to": "user", "program": "/bin/ls", "outcome": "run_in", "rule": "child_context",
    "reason": "none", "enforce": "farm", "caughtBy": "interposer", "latencyUs": 5, "blockedEnv": ["A_TOKEN: secret_name"],
    "refusedFds": ["4: a folder"]})"));
}
