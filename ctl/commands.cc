#include "ctl/commands.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <iostream>

#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/daemon_process.h"
#include "ctl/exec_client.h"
#include "ctl/limits.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

int complain(const std::string& text, int code) {
  std::cerr << "airlock: " << printable(text) << std::endl;
  return code;
}

std::uint64_t parse_duration(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  constexpr std::uint64_t kLongest = 1'000'000;  // of any unit: no product overflows
  if (error != std::errc() || number > kLongest) return 0;
  if (unit == "ms") return number;
  if (unit.empty() || unit == "s") return number * 1000;
  if (unit == "m") return number * 60'000;
  return unit == "h" ? number * 3'600'000 : 0;
}

namespace {

std::optional<json> env_object(const ContextOptions& options) {
  json env = json::object();
  for (const auto& entry : options.env) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      complain("-e " + entry + ": expected NAME=value", 0);
      return {};
    }
    env[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& name : options.unset) env[name] = nullptr;
  return env;
}

}  // namespace

int up(const Common& common, const DaemonOptions& options) {
  std::vector<std::string> words = {"--runtime-dir", common.runtime_dir};
  if (!options.config.empty()) words.insert(words.end(), {"--config", options.config});
  if (!options.tier.empty()) words.insert(words.end(), {"--tier", options.tier});
  if (!options.require_tier.empty()) {
    words.insert(words.end(), {"--require-tier", options.require_tier});
  }
  if (!options.stop_grace.empty()) {
    const auto grace = parse_duration(options.stop_grace);
    if (grace == 0 && options.stop_grace.find_first_not_of("0smh") != std::string::npos) {
      return complain("--stop-grace " + options.stop_grace + ": expected e.g. 500ms, 5s or 2m",
                      kUsage);
    }
    words.insert(words.end(), {"--stop-grace-ms", std::to_string(grace)});
  }
  if (options.development) words.push_back("--development");
  if (options.foreground) {
    std::string program = daemon_program();
    std::vector<char*> argv = {program.data()};
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    return complain(program + ": " + std::strerror(errno), kRefused);
  }
  const std::string log =
      options.log_file.empty() ? common.runtime_dir + "/airlock.log" : options.log_file;
  auto pid = start_daemon(words, log);
  if (!pid && pid.error().operation.empty()) {
    return pid.error().code == kUsage ? kUsage : kRefused;
  }
  if (!pid) return complain(pid.error().message(), kRefused);
  std::cerr << "airlock: serving " << common.runtime_dir << ", pid " << *pid << ", log " << log
            << "\n";
  return 0;
}

int down(const Common& common) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) {
    return complain(
        "no daemon serves " + common.runtime_dir + " (" + client.error().message() + ")", 1);
  }
  auto answer = client->ask("shutdown");
  if (!answer) return complain(answer.error().message(), 1);
  // The daemon closes this connection when its contexts have ended.
  (void)client->next_event();
  return 0;
}

namespace {

/// Puts the lifespans that were given into `target`; complains and is false if one is none.
bool add_lifespans(const ContextOptions& options, json& target) {
  const auto add = [&target](const char* option, const std::string& text, const char* field) {
    if (text.empty()) return true;
    const auto milliseconds = parse_duration(text);
    target[field] = text == "none" ? json(nullptr) : json(milliseconds);
    if (text == "none" || milliseconds != 0) return true;
    complain(std::string(option) + " " + text + ": expected e.g. 90s, 30m, 2h, or none", 0);
    return false;
  };
  return add("--ttl", options.ttl, "ttlMs") &&
         add("--idle-timeout", options.idle_timeout, "idleTimeoutMs");
}

}  // namespace

int ctx_create(const Common& common, const ContextOptions& options) {
  auto env = env_object(options);
  if (!env) return kUsage;
  json spec = {{"name", options.name},           {"env", *env},
               {"share", options.share},         {"hide", options.hide},
               {"isolation", options.isolation}, {"childContext", options.child_context},
               {"enforce", options.enforce},     {"rootfs", options.rootfs}};
  if (!options.cwd.empty()) spec["cwd"] = options.cwd;
  if (options.not_persistent) spec["persistent"] = false;
  if (options.api_socket) spec["apiSocket"] = *options.api_socket;
  if (!add_lifespans(options, spec)) return kUsage;
  auto limits = limits_object(options.limits);
  if (!limits) return complain(limits.error(), kUsage);
  spec["limits"] = std::move(*limits);
  auto answer = ask(common, "ctx.create", {{"spec", spec}});
  if (!answer) return 1;
  if (common.json) print_json((*answer)["context"]);
  return 0;
}

int ctx_list(const Common& common) {
  auto answer = ask(common, "ctx.list");
  if (!answer) return 1;
  const auto& list = (*answer)["contexts"];
  if (common.json) return print_json(list), 0;
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "TIER", "INTEGRITY", "CHILDREN RUN IN", "CWD"}};
  for (const auto& context : list) {
    const std::string integrity = text_of(context, "integrity");
    rows.push_back({text_of(context, "name"), text_of(context, "tier"),
                    integrity.substr(0, integrity.find(':')), text_of(context, "childContext"),
                    text_of(context, "cwd")});
  }
  print_table(rows);
  return 0;
}

int ctx_inspect(const Common& common, const std::string& name) {
  auto answer = ask(common, "ctx.inspect", {{"context", name}});
  if (!answer) return 1;
  print_json((*answer)["context"]);
  return 0;
}

int ctx_set(const Common& common, const ContextOptions& options) {
  auto env = env_object(options);
  if (!env) return kUsage;
  json changes = json::object();
  if (!env->empty()) changes["env"] = *env;
  if (!options.cwd.empty()) changes["cwd"] = options.cwd;
  if (!options.child_context.empty()) changes["childContext"] = options.child_context;
  if (!add_lifespans(options, changes)) return kUsage;
  auto answer = ask(common, "ctx.set", {{"context", options.name}, {"changes", changes}});
  if (!answer) return 1;
  if (common.json) print_json((*answer)["context"]);
  return 0;
}

int ctx_remove(const Common& common, const std::string& name) {
  auto answer = ask(common, "ctx.remove", {{"context", name}});
  if (!answer) return 1;
  if (common.json) return print_json(*answer), 0;
  const int survivors = answer->value("survivors", 0);
  return survivors == 0 ? 0 : complain(std::to_string(survivors) + " processes are left", 1);
}

int ps(const Common& common, const std::string& context) {
  const auto names = context_names(common, context);
  if (!names) return 1;
  json all = json::array();
  std::vector<std::vector<std::string>> rows = {{"CONTEXT", "JOB", "PID", "RUNNING", "PROGRAM"}};
  for (const auto& name : *names) {
    auto answer = ask(common, "jobs", {{"context", name}});
    if (!answer) return 1;
    for (auto& job : (*answer)["jobs"]) {
      rows.push_back({name, text_of(job, "job"), text_of(job, "pid"),
                      duration_text(job.value("runningMs", std::uint64_t{0})),
                      text_of(job, "program")});
      job["context"] = name;
      all.push_back(std::move(job));
    }
  }
  if (common.json) return print_json(all), 0;
  print_table(rows);
  return 0;
}

namespace {

void print_route(const json& record, bool as_json) {
  if (as_json) {
    std::cout << record.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    return;
  }
  std::cout << text_of(record, "from") << " -> " << text_of(record, "to") << "  "
            << text_of(record, "outcome") << "  " << printable(text_of(record, "program"))
            << "  pid " << text_of(record, "pid") << "  rule " << text_of(record, "rule") << "  "
            << text_of(record, "latencyUs") << " us";
  const std::string reason = text_of(record, "reason");
  if (reason != "-") std::cout << "  (" << printable(reason) << ")";
  std::cout << std::endl;
}

}  // namespace

int routes(const Common& common, bool follow) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) return complain(client.error().message(), 1);
  auto answer = client->ask("routes", {{"follow", follow}});
  if (!answer) return complain(answer.error().message(), 1);
  for (const auto& record : (*answer)["routes"]) print_route(record, common.json);
  while (follow) {
    auto event = client->next_event();
    if (!event) return complain("the daemon ended", 1);
    print_route(*event, common.json);
  }
  return 0;
}

int route_explain(const Common& common, const std::string& context,
                  const std::vector<std::string>& command) {
  auto answer = ask(common, "route.explain", {{"context", context}, {"argv", command}});
  if (!answer) return 1;
  if (common.json) return print_json(*answer), 0;
  const std::string outcome = text_of(*answer, "outcome");
  const std::string program = printable(command.front());
  if (outcome == "run_in") {
    std::cout << program << " of context '" << context << "' runs in '" << text_of(*answer, "to")
              << "'";
  } else if (outcome == "run_here") {
    std::cout << program << " stays in '" << context << "'";
  } else {
    std::cout << program << " is refused: " << text_of(*answer, "reason");
  }
  std::cout << " (rule " << text_of(*answer, "rule") << ")\n";
  return 0;
}

int info(const Common& common) {
  auto answer = ask(common, "info");
  if (!answer) return 1;
  if (common.json) return print_json(*answer), 0;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : answer->items())
    rows.push_back({key, text_of(*answer, key.c_str())});
  print_table(rows);
  return 0;
}

int version(const Common& common) {
  if (common.json) return print_json({{"version", AIRLOCK_VERSION}}), 0;
  std::cout << AIRLOCK_VERSION << "\n";
  return 0;
}

int config_check(const Common& common, const std::string& file) {
  const std::string program = daemon_program();
  const char* format = common.json ? "--json" : nullptr;
  ::execl(program.c_str(), program.c_str(), "--check-config", file.c_str(), format, nullptr);
  return complain(program + ": " + std::strerror(errno), 1);
}

}  // namespace ctl
