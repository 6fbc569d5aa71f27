#include <iostream>

#include "ctl/api_client.h"
#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

namespace {

/// "8080, 53/udp".
std::string ports_text(const json& service) {
  std::string text;
  for (const auto& port : service["ports"]) {
    text += (text.empty() ? "" : ", ") + text_of(port, "port");
    if (port.value("protocol", "") == "udp") text += "/udp";
  }
  return text.empty() ? "-" : text;
}

std::string state_text(const json& service) {
  const std::string state = text_of(service, "state");
  return service.value("crashLooping", false) ? state + ", crash loop" : state;
}

/// What a person should know beside the table, a line each.
void print_remarks(const json& service) {
  const std::string name = text_of(service, "name");
  if (service.value("crashLooping", false)) {
    std::cout << name << ": ended " << text_of(service, "failures")
              << " times in a row; see 'airlock logs " << name << "'\n";
  }
  for (const auto& port : service["ports"]) {
    const auto resets = port.value("resets", std::uint64_t{0});
    if (resets == 0) continue;
    std::cout << name << ": port " << text_of(port, "port") << " was shut down " << resets
              << " times by its service and listens again; waiting clients were reset\n";
  }
  const auto& log = service["log"];
  if (log.value("droppedBytes", std::uint64_t{0}) == 0) return;
  std::cout << name << ": " << text_of(log, "droppedBytes")
            << " bytes of its log are lost: " << printable(text_of(log, "error")) << "\n";
}

/// The last `count` lines.
std::string last_lines(const std::string& text, std::size_t count) {
  std::size_t at = text.size();
  if (at > 0 && text.back() == '\n') --at;
  for (; count > 0 && at != std::string::npos && at > 0; --count) at = text.rfind('\n', at - 1);
  return count > 0 || at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace

int services(const Common& common) {
  auto answer = ask(common, "services");
  if (!answer) return 1;
  const auto& list = (*answer)["services"];
  if (common.json) return print_json(list), 0;
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "FOR", "PID", "PORTS", "USER", "RESTARTS", "LAST END"}};
  for (const auto& service : list) {
    rows.push_back({text_of(service, "name"), state_text(service),
                    duration_text(service.value("sinceMs", std::uint64_t{0})),
                    text_of(service, "pid"), ports_text(service), text_of(service, "user"),
                    text_of(service, "restarts"), text_of(service, "lastEnd")});
  }
  print_table(rows);
  for (const auto& service : list) print_remarks(service);
  return 0;
}

int logs(const Common& common, const LogOptions& options) {
  if (is_exec_id(options.service)) return exec_logs(common, options.service, options.follow);
  auto client = Client::connect(common.runtime_dir);
  if (!client) return complain(client.error().message(), 1);
  auto answer =
      client->ask("service.log", {{"service", options.service}, {"follow", options.follow}});
  if (!answer) return complain(answer.error().message(), 1);
  const std::string text = answer->value("text", "");
  std::cout << (options.lines == 0 ? text : last_lines(text, options.lines)) << std::flush;
  while (options.follow) {
    auto event = client->next_event();
    if (!event) return complain("the daemon ended", 1);
    std::cout << event->value("text", "") << std::flush;
  }
  return 0;
}

int restart(const Common& common, const std::string& service) {
  return ask(common, "service.restart", {{"service", service}}) ? 0 : 1;
}

int reload(const Common& common) {
  auto answer = ask(common, "reload");
  if (!answer) return 1;
  const auto& problems = (*answer)["problems"];
  if (common.json) print_json(*answer);
  for (const auto& problem : problems) complain(problem.get<std::string>(), 1);
  return problems.empty() ? 0 : 1;
}

}  // namespace ctl
