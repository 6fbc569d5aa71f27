#include "ctl/agent_text.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ctl/print.h"

namespace ctl {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

/// One row per item, the label and the remark at the first one.
void add_rows(Rows& rows, const std::string& label, const json& items,
              const std::string& remark = {}) {
  bool is_first = true;
  for (const auto& item : items) {
    const std::string note = is_first && !remark.empty() ? "  (" + remark + ")" : "";
    rows.push_back({is_first ? "  " + label : "", item.get<std::string>() + note});
    is_first = false;
  }
}

void add_steps(Rows& rows, const json& steps) {
  json lines = json::array();
  for (const auto& step : steps) {
    lines.push_back(step.value("file", "") + "  (" + step.value("kind", "") + ")");
  }
  add_rows(rows, "runs", lines);
}

bool has_static_part(const json& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const json& step) { return step.value("kind", "") == "static"; });
}

void add_mechanism(Rows& rows, const json& report) {
  const std::string why = has_static_part(report["runs"])
                              ? "part of it is static: the interposer alone would not see it"
                              : "all of it is dynamic: the interposer sees it, too";
  const bool works = report["mechanism"].is_string();
  add_rows(rows, "routed by", {works ? report.value("mechanism", "") : "nothing"}, why);
  add_rows(rows, "not stopped", report["notStopped"]);
}

void add_stays(Rows& rows, const json& stays) {
  add_rows(rows, "stays with it", stays["files"], "by identity, as long as nobody writes them");
  add_rows(rows, "and scripts in", stays["packages"]);
  add_rows(rows, "and copies in", stays["copies"]);
  add_rows(rows, "and helpers", stays["pidHelpers"], "when it asks about its own pids");
  for (const auto& server : stays["servers"]) {
    add_rows(rows, "server", {server.value("program", "")}, server.value("action", ""));
  }
}

void add_children(Rows& rows, const json& children) {
  const std::string home = children.value("home", "");
  add_rows(rows, "children run in", {children.value("context", "")},
           home.empty() ? "" : "with a HOME of their own at " + home);
  add_rows(rows, "see, too", children["share"]);
  add_rows(rows, "do not see", children["hide"]);
  add_rows(rows, "can only read", children["protect"]);
  add_rows(rows, "env passed", children["passEnv"], "although it looks like a credential");
  add_rows(rows, "env blocked", children["blockEnv"], "beside what looks like a credential");
}

}  // namespace

int explain_agent(const Common& common, const std::vector<std::string>& command,
                  const json& report) {
  if (report.contains("errors")) {
    for (const auto& error : report["errors"]) complain(error.get<std::string>(), 0);
    return 1;
  }
  const bool runs = report["mechanism"].is_string();
  if (common.json) return print_json(report), runs ? 0 : 1;
  const auto& profile = report["profile"];
  std::cout << printable(command.front()) << ": "
            << (profile.is_null() ? "an agent that no profile knows"
                                  : printable(profile.value("title", "") + ", known by " +
                                              profile.value("file", "")))
            << "\n\n";
  Rows rows;
  add_steps(rows, report["runs"]);
  add_mechanism(rows, report);
  add_stays(rows, report["stays"]);
  add_children(rows, report["children"]);
  print_table(rows);
  std::cout << "\n";
  for (const auto& warning : report["warnings"]) {
    std::cout << "Note: " << printable(warning.get<std::string>()) << ".\n";
  }
  std::cout << (runs ? "What it starts would be routed.\n"
                     : "It would be refused: " + printable(report.value("reason", "")) + "\n");
  return runs ? 0 : 1;
}

}  // namespace ctl
