#include "routerd/agent_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace routerd {

using json = nlohmann::json;

namespace {

const char* kind_of(bool is_static) { return is_static ? "static" : "dynamic"; }

/// The files that are executed one after the other, as far as they are known before.
json steps_of(const Agent& agent) {
  const auto& program = agent.program;
  json steps = json::array();
  const auto add = [&steps](const std::string& file, const char* kind) {
    steps.push_back({{"file", file}, {"kind", kind}});
  };
  if (!program.script.empty()) {
    add(program.script, "script");
    for (const auto& interpreter : program.interpreters) {
      if (interpreter != program.executable) add(interpreter, "script");
    }
  }
  add(program.executable, kind_of(program.is_static));
  if (program.script.empty()) return steps;
  for (const auto& runtime : agent.runtimes) add(runtime.path, kind_of(runtime.is_static));
  return steps;
}

json stays_of(const Agent& agent, const AgentIdentity& identity) {
  json stays = {{"files", json::array()},
                {"packages", identity.packages},
                {"copies", identity.copies},
                {"pidHelpers", json::array()},
                {"servers", json::array()}};
  for (const auto* files : {&agent.scripts, &agent.runtimes}) {
    for (const auto& file : *files) stays["files"].push_back(file.path);
  }
  if (!agent.profile) return stays;
  for (const auto& rule : agent.profile->pid_helpers) {
    std::string text = rule.program;
    for (const auto& option : rule.options) text += " " + option;
    stays["pidHelpers"].push_back(text);
  }
  for (const auto& rule : agent.profile->servers) {
    stays["servers"].push_back({{"program", rule.program},
                                {"action", rule.action == ServerAction::keep ? "keep" : "route"}});
  }
  return stays;
}

json children_of(const Agent& agent, const contexts::ContextSpec& children) {
  auto share = children.share;
  for (const auto& folder : agent.share) {
    const bool is_new = std::find(share.begin(), share.end(), folder) == share.end();
    if (is_new && !children.home.empty() && is_below(folder, children.home)) {
      share.push_back(folder);
    }
  }
  const bool is_known = agent.profile != nullptr;
  return {{"context", children.name},
          {"home", children.home},
          {"share", share},
          {"hide", children.hide},
          {"protect", children.protect},
          {"passEnv", is_known ? json(agent.profile->pass_env) : json::array()},
          {"blockEnv", is_known ? json(agent.profile->block_env) : json::array()}};
}

json warnings_of(const Agent& agent, const contexts::ContextSpec& children) {
  json warnings = json::array();
  if (!agent.profile) {
    warnings.push_back(
        "no profile knows this program: what it starts again of itself is routed like any child");
  }
  for (const auto& package : agent.packages) {
    if (is_out_of_reach(children, package)) continue;
    warnings.push_back(package + " lies in the working directory: its children can change it");
  }
  for (const auto& folder : agent.copies) {
    if (is_out_of_reach(children, folder)) continue;
    warnings.push_back("copies in " + folder + " are routed: its children can write there");
  }
  return warnings;
}

}  // namespace

json agent_report(const Agent& agent, const contexts::ContextSpec& children,
                  contexts::Enforce wanted, const Offers& offers) {
  const auto identity = identity_of(
      agent, [&children](const std::string& path) { return is_out_of_reach(children, path); });
  const auto chosen = choose_mechanism(wanted, offers, agent.has_static_part(), false);
  json report = {{"file", agent.program.path},
                 {"runs", steps_of(agent)},
                 {"profile", nullptr},
                 {"mechanism", nullptr},
                 {"reason", ""},
                 {"notStopped", json::array()},
                 {"stays", stays_of(agent, identity)},
                 {"children", children_of(agent, children)},
                 {"warnings", warnings_of(agent, children)}};
  if (agent.profile) {
    report["profile"] = {{"name", agent.profile->name},
                         {"title", agent.profile->title},
                         {"file", agent.profile->file}};
  }
  if (chosen) {
    report["mechanism"] = contexts::name_of(chosen->mechanism);
    report["notStopped"] = chosen->not_stopped;
  } else {
    report["reason"] = chosen.error().message();
  }
  return report;
}

}  // namespace routerd
