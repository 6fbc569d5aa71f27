// `airlock kill`: jobs by number, execs of the API by id, whole contexts.

#include <signal.h>
#include <string.h>

#include <charconv>
#include <iostream>
#include <optional>

#include "ctl/api_client.h"
#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/exec_client.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

namespace {

int signal_number(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
  for (number = 1; number < NSIG; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    if (abbreviation != nullptr && name == abbreviation) return number;
  }
  return 0;
}

/// What there is to do, beside to whom.
std::optional<json> order_of(const JobOptions& options) {
  const int signal = signal_number(options.signal);
  if (signal == 0) {
    complain("signal '" + options.signal + "': expected a name or number", 0);
    return {};
  }
  json order = {{"signal", signal}};
  if (!options.scope.empty()) order["scope"] = options.scope;
  if (options.kill_after.empty()) return order;
  const auto after = parse_duration(options.kill_after);
  if (after == 0) {
    complain("--kill-after " + options.kill_after + ": expected e.g. 500ms, 5s or 1m", 0);
    return {};
  }
  order["escalate"] = {{"afterMs", after}, {"signal", SIGKILL}};
  return order;
}

/// 1 if somebody is left although SIGKILL was sent.
int tell(const Common& common, const json& answer, const json& order) {
  const bool is_counted = answer.contains("survivors");
  if (common.json) {
    print_json(is_counted
                   ? json{{"delivered", answer["delivered"]}, {"survivors", answer["survivors"]}}
                   : json::object());
  } else if (is_counted) {
    std::cerr << "airlock: " << answer["delivered"] << " processes signalled, "
              << answer["survivors"] << " are left\n";
  }
  const bool is_deadly = order["signal"] == SIGKILL || order.contains("escalate");
  return is_deadly && is_counted && answer["survivors"] != 0 ? 1 : 0;
}

int kill_exec(const Common& common, const JobOptions& options, const json& order) {
  const HttpRequest request{.method = "POST",
                            .path = "/api/v1/execs/" + options.context + "/signal",
                            .headers = {"Content-Type: application/json"},
                            .body = order.dump()};
  const auto answer = ask_api_for_json(common, request);
  return answer ? tell(common, *answer, order) : 1;
}

std::optional<std::uint64_t> job_number(const std::string& text) {
  if (text == "all") return 0;
  std::uint64_t job = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, job);
  if (parsed.ec == std::errc() && parsed.ptr == end && job != 0) return job;
  complain("job '" + text + "': expected a number of 'airlock ps', or 'all'", 0);
  return {};
}

}  // namespace

int kill_job(const Common& common, const JobOptions& options) {
  auto order = order_of(options);
  if (!order) return kUsage;
  if (is_exec_id(options.context)) return kill_exec(common, options, *order);
  const std::string& scope = options.scope;
  json fields = *order;
  fields["context"] = options.context;
  fields["scope"] = scope;
  const bool is_wide = scope == "exec" || scope == "context";
  if (options.job.empty() && scope != "context") {
    return complain("which JOB? 'airlock ps' lists them; --scope context is all of them", kUsage);
  }
  if (!options.job.empty()) {
    const auto job = job_number(options.job);
    if (!job) return kUsage;
    fields["job"] = *job;
  }
  if (!is_wide && (scope == "leader" || !options.kill_after.empty())) {
    return complain(
        "a job of 'airlock ps' takes the scopes group, exec and context, and "
        "--kill-after the last two",
        kUsage);
  }
  const auto answer = ask(common, is_wide ? "kill" : "signal", fields);
  return answer ? tell(common, *answer, *order) : 1;
}

}  // namespace ctl
