#include "routerd/audit/trail.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>

#include "tests/support/temp_dir.h"

using nlohmann::json;
using routerd::RouteRecord;
using routerd::audit::AuditLog;
using routerd::audit::Trail;

namespace {

/// A trail, and what it has recorded.
struct Recorded {
  Recorded() {
    auto log = AuditLog::open({.folder = dir.path() + "/audit"});
    REQUIRE(log);
    trail.emplace(std::move(*log));
    trail->log().follow([this](const json& record) { records.push_back(record); });
  }
  json one(const std::string& event) const {
    json found;
    int count = 0;
    for (const auto& record : records) {
      if (record.at("event") != event) continue;
      found = record;
      ++count;
    }
    INFO(event);
    CHECK(count == 1);
    return found;
  }
  bool has(const std::string& event) const {
    return std::ranges::any_of(records, [&](const json& each) { return each["event"] == event; });
  }
  support::TempDir dir;
  std::vector<json> records;
  std::optional<Trail> trail;
};

RouteRecord decision(std::uint64_t job, const std::string& outcome = "run_in") {
  RouteRecord record;
  record.job = job;
  record.to = "user";
  record.program = "make";
  record.outcome = outcome;
  return record;
}

RouteRecord asked_for(RouteRecord record) {
  record.asked_by = {"createTerminal", "exec_1", "host", "10.0.0.1", "req_1", ""};
  return record;
}

}  // namespace

TEST_CASE("what the API starts has a record of who asked, and its end, too", "[audit]") {
  Recorded told;
  told.trail->exec_decided(asked_for(decision(7)));
  const json start = told.one("api.exec");
  CHECK(start.at("job") == 7);
  CHECK(start.at("program") == "make");
  CHECK(start.at("outcome") == "run_in");
  told.trail->job_ended("user", {.job = 7, .wait_status = 3 << 8});
  const json end = told.one("exec.ended");
  CHECK(end.at("status") == json{{"exit", 3}});
  CHECK(end.contains("durationMs"));
  for (const auto& record : {start, end}) {
    CHECK(record.at("operation") == "createTerminal");
    CHECK(record.at("exec") == "exec_1");
    CHECK(record.at("token") == "host");
    CHECK(record.at("client") == "10.0.0.1");
    CHECK(record.at("requestId") == "req_1");
    CHECK_FALSE(record.contains("traceparent"));
    CHECK(record.at("context") == "user");
  }
}

TEST_CASE("nobody asked the API for what others start", "[audit]") {
  Recorded told;
  told.trail->exec_decided(decision(7));
  told.trail->job_ended("user", {.job = 7});
  CHECK_FALSE(told.has("api.exec"));
  CHECK_FALSE(told.one("exec.ended").contains("token"));
}

TEST_CASE("what could not be started ends once", "[audit]") {
  Recorded told;
  told.trail->exec_decided(asked_for(decision(7)));
  RouteRecord failed = asked_for(decision(7, "failed"));
  failed.reason = "make: No such file or directory";
  told.trail->exec_decided(failed);
  told.trail->exec_decided(failed);
  (void)told.one("api.exec");
  const json end = told.one("exec.ended");
  CHECK(end.at("status") == json{{"failed", "make: No such file or directory"}});
  CHECK(end.at("token") == "host");
}

TEST_CASE("what is refused has no end", "[audit]") {
  Recorded told;
  told.trail->exec_decided(asked_for(decision(0, "refuse")));
  CHECK(told.one("api.exec").at("outcome") == "refuse");
  CHECK_FALSE(told.has("exec.ended"));
}

TEST_CASE("a shell is believed about commands of its own context only", "[audit]") {
  Recorded told;
  told.trail->exec_decided(decision(7));
  const wire::JobRefused refused{7, {126, 0, std::string(5000, 'x')}};
  told.trail->command_refused("other", refused);
  told.trail->command_ended("other", {.job = 7});
  CHECK_FALSE(told.has("exec.ended"));
  told.trail->command_refused("user", refused);
  CHECK(told.one("exec.ended").at("status").at("failed").get<std::string>().size() == 512);
}

TEST_CASE("a shell has a record of its start, and of its end", "[audit]") {
  Recorded recorded;
  recorded.trail->shell_started("user", "work", 1000, 7);
  const auto started = recorded.one("shell.started");
  CHECK(started.at("context") == "user");
  CHECK(started.at("shell") == "work");
  CHECK(started.at("uid") == 1000);
  CHECK(started.at("job") == 7);
  wire::JobEnded end;
  end.job = 7;
  end.wait_status = 9;
  recorded.trail->job_ended("user", end);
  const auto ended = recorded.one("exec.ended");
  CHECK(ended.at("job") == 7);
  CHECK(ended.at("program") == "airlock-shell");
  CHECK(ended.at("status") == json{{"signal", 9}});
}
