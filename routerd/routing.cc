#include "routerd/routing.h"

#include <fnmatch.h>

#include <algorithm>

namespace routerd {

const std::vector<KnownAgent>& known_agents() {
  static const std::vector<KnownAgent> agents = {
      {"claude",
       "*/@anthropic-ai/claude-code*/*claude*",
       {".claude/shell-snapshots", ".claude/session-env"}},
      {"opencode", "*/opencode-*/bin/opencode", {}},
      {"gemini", "*/@google/gemini-cli/*", {}},
      {"qwen", "*/@qwen-code/qwen-code/*", {}},
      {"copilot", "*/@github/copilot*/*", {}},
      {"codex", "*/@openai/codex*/*", {}},
  };
  return agents;
}

namespace {

bool matches(std::string_view pattern, const std::string& path) {
  return !path.empty() && ::fnmatch(std::string(pattern).c_str(), path.c_str(), 0) == 0;
}

/// Interpreter flags that bring no code of their own; without a value or with `=VALUE`.
bool is_harmless_flag(std::string_view flag) {
  constexpr std::string_view kHarmless[] = {"--no-warnings",
                                            "--disable-warning",
                                            "--no-deprecation",
                                            "--max-old-space-size",
                                            "--enable-source-maps",
                                            "--expose-gc",
                                            "-u",
                                            "-B",
                                            "-E",
                                            "-s",
                                            "-I",
                                            "-O",
                                            "-OO"};
  const auto name = flag.substr(0, flag.find('='));
  return std::find(std::begin(kHarmless), std::end(kHarmless), name) != std::end(kHarmless);
}

/// `env SCRIPT`, `node [--flag…] SCRIPT …`: the interpreter that the kernel started for an agent's
/// `#!` line hands over to the next one.
bool is_launcher_of(const std::string& script, const std::vector<std::string_view>& argv) {
  if (script.empty()) return false;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == script) return true;
    if (!is_harmless_flag(argv[i])) return false;
  }
  return false;
}

Decision run_in(std::string context, std::string rule) {
  return {Outcome::run_in, std::move(context), std::move(rule), {}};
}

Decision refuse(std::string rule, std::string reason) {
  return {Outcome::refuse, {}, std::move(rule), std::move(reason)};
}

std::optional<Decision> by_own_rules(const contexts::ContextSpec& from, const RouteFacts& facts) {
  for (std::size_t i = 0; i < from.routes.size(); ++i) {
    const auto& rule = from.routes[i];
    if (!matches(rule.program, facts.program)) continue;
    const std::string name = "routes[" + std::to_string(i) + "]";
    switch (rule.action) {
      case contexts::RuleAction::here:
        return Decision{Outcome::run_here, {}, name, {}};
      case contexts::RuleAction::refuse:
        return refuse(name, facts.program + " is refused by a rule of context '" + from.name + "'");
      case contexts::RuleAction::route:
        return run_in(rule.to.empty() ? from.child_context : rule.to, name);
    }
  }
  return {};
}

}  // namespace

bool is_shim(const std::string& script) {
  constexpr std::string_view kShims[] = {"*/.pyenv/shims/*", "*/.rbenv/shims/*",
                                         "*/.asdf/shims/*",  "*/.local/share/mise/shims/*",
                                         "*/.volta/bin/*",   "*/.nodenv/shims/*"};
  return std::any_of(std::begin(kShims), std::end(kShims),
                     [&script](std::string_view shim) { return matches(shim, script); });
}

namespace {

std::optional<Decision> by_agent(const RouteFacts& facts) {
  const auto& agent = facts.agent;
  if (const KnownAgent* known = find_agent(agent)) {
    // A script agent's interpreter runs anything; only a self-contained executable is the agent.
    const bool is_self = agent.script.empty() && facts.program_id.is_known() &&
                         facts.program_id == agent.executable_id;
    if (is_self) return Decision{Outcome::run_here, {}, "agent:" + std::string(known->name), {}};
  }
  if (facts.is_launched_process && is_shim(agent.script)) {
    return Decision{Outcome::run_here, {}, "agent-shim", {}};
  }
  if (is_launcher_of(agent.script, facts.argv)) {
    return Decision{Outcome::run_here, {}, "agent-launcher", {}};
  }
  return {};
}

/// A caller may choose only among the contexts it can reach anyway.
bool is_reachable(const contexts::ContextSpec& from, const std::string& context) {
  return context == from.child_context ||
         std::any_of(from.routes.begin(), from.routes.end(),
                     [&context](const auto& rule) { return rule.to == context; });
}

}  // namespace

const KnownAgent* find_agent(const AgentIdentity& agent) {
  for (const auto& known : known_agents()) {
    const std::string& file = agent.script.empty() ? agent.executable : agent.script;
    if (matches(known.executable, file)) return &known;
  }
  return nullptr;
}

Decision decide(const contexts::ContextSpec& from, const RouteFacts& facts) {
  if (facts.stub_id.is_known() && facts.program_id == facts.stub_id) {
    return refuse("stub-recursion", "airlock's own stub cannot be routed");
  }
  if (auto decision = by_own_rules(from, facts)) return *decision;
  if (auto decision = by_agent(facts)) return *decision;
  if (!facts.requested_context.empty()) {
    if (is_reachable(from, facts.requested_context)) {
      return run_in(facts.requested_context, "SANDBOX_ROUTE_TO_CONTEXT");
    }
    return refuse("SANDBOX_ROUTE_TO_CONTEXT", "context '" + facts.requested_context +
                                                  "' cannot be reached from '" + from.name + "'");
  }
  if (from.child_context.empty()) {
    return refuse("no-route", "context '" + from.name + "' has no child_context");
  }
  return run_in(from.child_context, "child_context");
}

}  // namespace routerd
