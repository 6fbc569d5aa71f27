#include "routerd/routing.h"

#include <fnmatch.h>

#include <algorithm>
#include <span>

namespace routerd {

namespace {

bool matches(std::string_view pattern, const std::string& path) {
  return !path.empty() && ::fnmatch(std::string(pattern).c_str(), path.c_str(), 0) == 0;
}

/// Interpreter flags that bring no code of their own; without a value or with `=VALUE`. Those of
/// one letter mean something else to every interpreter: only Python's are known.
bool is_harmless_flag(std::string_view flag, bool is_python) {
  constexpr std::string_view kLong[] = {"--no-warnings",        "--disable-warning",
                                        "--no-deprecation",     "--max-old-space-size",
                                        "--enable-source-maps", "--expose-gc"};
  constexpr std::string_view kPython[] = {"-u", "-B", "-E", "-s", "-I", "-O", "-OO"};
  const auto is_in = [&flag](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), flag.substr(0, flag.find('='))) != names.end();
  };
  return is_in(kLong) || (is_python && is_in(kPython));
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
    // An interpreter was not asked for; its script was.
    if (!matches(rule.program, facts.script.empty() ? facts.program : facts.script)) continue;
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

/// The first operand of an interpreter, if nothing before it brings code.
std::string_view operand(const AgentIdentity& agent, const std::vector<std::string_view>& argv) {
  const auto name = agent.executable.substr(agent.executable.rfind('/') + 1);
  const bool is_python = name.starts_with("python");
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (!argv[i].starts_with('-')) return argv[i];
    if (!is_harmless_flag(argv[i], is_python)) return {};
  }
  return {};
}

/// The argv of what `env [-S] PROGRAM ARG…` of a `#!` line runs. Empty with any other option and
/// with NAME=VALUE: those can bring code.
std::vector<std::string_view> argv_of_env(const std::vector<std::string_view>& argv) {
  std::vector<std::string_view> words;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    std::string_view word = argv[i];
    const bool is_split = i == 1 && word.starts_with("-S");
    if (is_split) word.remove_prefix(2);
    for (std::size_t at = 0; is_split && at < word.size();) {
      const std::size_t end = std::min(word.find(' ', at), word.size());
      if (end > at) words.push_back(word.substr(at, end - at));
      at = end + 1;
    }
    if (!is_split) words.push_back(word);
  }
  const bool is_program = !words.empty() && !words.front().starts_with('-') &&
                          words.front().find('=') == std::string_view::npos;
  return is_program ? words : std::vector<std::string_view>{};
}

bool is_one_of(const FileId& id, const std::vector<FileId>& known) {
  return id.is_known() && std::find(known.begin(), known.end(), id) != known.end();
}

}  // namespace

std::string_view script_word(const AgentIdentity& agent, const FileId& program,
                             const std::vector<std::string_view>& argv) {
  if (program.is_known() && program == agent.env) return operand(agent, argv_of_env(argv));
  return is_one_of(program, agent.launchers) ? operand(agent, argv) : std::string_view();
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

namespace {

bool is_below_one_of(const std::string& path, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&path](const std::string& folder) { return is_below(path, folder); });
}

/// `-p`, or `-p` and a number in one word.
bool is_option(std::string_view word, std::string_view option) {
  return word.starts_with(option) &&
         word.find_first_not_of("0123456789,", option.size()) == std::string_view::npos;
}

bool is_asked_for(const PidHelper& helper, const RouteFacts& facts) {
  if (!facts.program_id.is_known() || facts.program_id != helper.id) return false;
  return std::all_of(
      helper.options.begin(), helper.options.end(), [&facts](const std::string& option) {
        return std::any_of(facts.argv.begin(), facts.argv.end(),
                           [&option](std::string_view word) { return is_option(word, option); });
      });
}

/// Which of the agent's own files the request is about, empty if none.
std::string_view own_file(const RouteFacts& facts) {
  const auto& agent = facts.agent;
  if (is_one_of(facts.program_id, agent.runtimes)) return "runtime";
  if (is_one_of(facts.program_id, agent.scripts)) return "script";
  if (!script_word(agent, facts.program_id, facts.argv).empty() &&
      (is_one_of(facts.script_id, agent.scripts) ||
       is_below_one_of(facts.resolved_script, agent.packages))) {
    return "script";
  }
  if (is_below_one_of(facts.resolved_program, agent.copies)) return "copy";
  const bool is_helper =
      std::any_of(agent.helpers.begin(), agent.helpers.end(),
                  [&facts](const PidHelper& helper) { return is_asked_for(helper, facts); });
  return is_helper ? "pid-helper" : "";
}

const ServerFile* server_of(const RouteFacts& facts) {
  for (const auto& server : facts.agent.servers) {
    const bool is_program = facts.program_id.is_known() && facts.program_id == server.id;
    const bool is_script = facts.script_id.is_known() && facts.script_id == server.id &&
                           !script_word(facts.agent, facts.program_id, facts.argv).empty();
    if (is_program || is_script) return &server;
  }
  return nullptr;
}

std::optional<Decision> by_agent(const RouteFacts& facts) {
  const auto& agent = facts.agent;
  if (facts.is_launched_process && is_shim(agent.script)) {
    return Decision{Outcome::run_here, {}, "agent-shim", {}};
  }
  if (!facts.is_called_by_agent) return {};
  if (const auto* server = server_of(facts)) {
    if (!server->is_kept) return {};
    return Decision{Outcome::run_here, {}, agent.profile + ":server", {}};
  }
  const auto own = own_file(facts);
  if (own.empty()) return {};
  const std::string who = agent.profile.empty() ? "agent" : agent.profile;
  return Decision{Outcome::run_here, {}, who + ":" + std::string(own), {}};
}

/// A caller may choose only among the contexts it can reach anyway.
bool is_reachable(const contexts::ContextSpec& from, const std::string& context) {
  return context == from.child_context ||
         std::any_of(from.routes.begin(), from.routes.end(),
                     [&context](const auto& rule) { return rule.to == context; });
}

}  // namespace

Decision decide(const contexts::ContextSpec& from, const RouteFacts& facts) {
  if (facts.stub_id.is_known() && facts.program_id.is_same_file(facts.stub_id)) {
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
