#include "routerd/agent.h"

#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "routerd/launch.h"

namespace routerd {
namespace {

/// Where the programs of PID helpers are looked for: folders of the system, never PATH.
constexpr const char* kSystemFolders[] = {"/usr/bin", "/bin", "/usr/sbin", "/sbin"};

std::string resolve(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result(resolved);
  ::free(resolved);
  return result;
}

/// Also for what does not exist yet.
std::string resolve_folder(const std::string& path) {
  std::error_code error;
  auto resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

std::vector<std::string> find_files(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return files;
}

void add_file(std::vector<AgentFile>& files, const std::string& path) {
  AgentFile file{.path = resolve(path), .id = file_id(path)};
  const bool is_new = std::none_of(files.begin(), files.end(),
                                   [&file](const AgentFile& other) { return other.id == file.id; });
  if (file.id.is_known() && is_new) files.push_back(std::move(file));
}

void add_unique(std::vector<std::string>& list, std::string text) {
  if (text.empty() || std::find(list.begin(), list.end(), text) != list.end()) return;
  list.push_back(std::move(text));
}

std::vector<PidHelper> find_helpers(const AgentProfile& profile) {
  std::vector<PidHelper> helpers;
  for (const auto& rule : profile.pid_helpers) {
    for (const char* folder : kSystemFolders) {
      const auto path = std::string(folder) + "/" + rule.program;
      const auto id = file_id(path);
      if (!id.is_known()) continue;
      helpers.push_back({id, rule.options, path});
      break;
    }
  }
  return helpers;
}

/// Like expand_place, for a pattern: what a variable holds is none.
std::string expand_pattern(const std::string& place, const contexts::Environment& env) {
  const auto slash = place.find('/');
  if (place.starts_with('/') || slash == std::string::npos) return expand_place(place, env);
  const auto start = expand_place(place.substr(0, slash + 1), env);
  return start.empty() ? "" : escape_glob(start) + place.substr(slash + 1);
}

std::vector<ServerFile> find_servers(const AgentProfile& profile,
                                     const contexts::Environment& env) {
  std::vector<ServerFile> servers;
  for (const auto& rule : profile.servers) {
    for (const auto& path : find_files(expand_pattern(rule.program, env))) {
      const auto id = file_id(path);
      const bool is_kept = rule.action == ServerAction::keep;
      if (id.is_known()) servers.push_back({id, is_kept, path});
    }
  }
  return servers;
}

std::vector<std::string> expand_all(const std::vector<std::string>& places,
                                    const contexts::Environment& env) {
  std::vector<std::string> paths;
  for (const auto& place : places) add_unique(paths, expand_place(place, env));
  return paths;
}

/// The file that says whose agent this is: the script, or the executable of an agent without one.
std::string main_file(const Program& program) {
  return program.script.empty() ? program.executable : resolve(program.script);
}

/// `node [--flag…] SCRIPT` is the script, if a profile knows it.
void adopt_operand(Program& program, const std::vector<std::string>& argv, const std::string& cwd,
                   const Profiles& profiles, const std::string& home) {
  if (!program.script.empty() || profiles.of_file(program.executable, home) != nullptr) return;
  AgentIdentity interpreter;
  interpreter.executable = program.executable;
  interpreter.launchers = {file_id(program.executable)};
  const std::vector<std::string_view> words(argv.begin(), argv.end());
  const std::string word(script_word(interpreter, interpreter.launchers.front(), words));
  if (word.empty()) return;
  const std::string path = word.starts_with('/') ? word : cwd + "/" + word;
  if (profiles.of_file(resolve(path), home) == nullptr || !file_id(path).is_known()) return;
  program.script = path;
  program.interpreters = {program.executable};
}

void find_own_files(Agent& agent, const std::string& home) {
  const auto& profile = *agent.profile;
  const auto package = package_of(profile, main_file(agent.program), home);
  add_unique(agent.packages, package);
  for (const auto& pattern : profile.runtimes) {
    for (const auto& path : find_files(escape_glob(package) + "/" + pattern)) {
      add_file(agent.runtimes, path);
      add_unique(agent.packages, package_of(profile, resolve(path), home));
    }
  }
  for (auto& runtime : agent.runtimes) {
    const auto inspected = inspect_program(runtime.path, {}, "/");
    runtime.is_static = inspected && inspected->is_static;
  }
  for (const auto& pattern : profile.scripts) {
    for (const auto& path : find_files(escape_glob(package) + "/" + pattern)) {
      add_file(agent.scripts, path);
    }
  }
}

}  // namespace

bool Agent::has_static_part() const { return !static_part().empty(); }

std::string Agent::static_part() const {
  if (program.is_static) return program.executable;
  const auto found = std::find_if(runtimes.begin(), runtimes.end(),
                                  [](const AgentFile& file) { return file.is_static; });
  return found == runtimes.end() ? "" : found->path;
}

std::string expand_place(const std::string& place, const contexts::Environment& env) {
  if (place.starts_with('/')) return place;
  const auto slash = std::min(place.find('/'), place.size());
  std::string start =
      place.starts_with("~/") ? variable(env, "HOME") : variable(env, place.substr(1, slash - 1));
  while (start.size() > 1 && start.ends_with('/')) start.pop_back();
  if (start.size() < 2 || !start.starts_with('/')) return {};
  return start + place.substr(slash);
}

Agent examine_agent(Program program, const std::vector<std::string>& argv, const std::string& cwd,
                    const Profiles& profiles, const contexts::Environment& env) {
  Agent agent;
  agent.program = std::move(program);
  const auto home = resolve(variable(env, "HOME"));
  adopt_operand(agent.program, argv, cwd, profiles, home);
  agent.profile = profiles.of_file(main_file(agent.program), home);
  if (!agent.program.script.empty()) add_file(agent.scripts, agent.program.script);
  if (!agent.profile) return agent;
  if (agent.program.script.empty()) add_file(agent.runtimes, agent.program.executable);
  const auto& profile = *agent.profile;
  find_own_files(agent, home);
  agent.helpers = find_helpers(profile);
  agent.servers = find_servers(profile, env);
  agent.copies = expand_all(profile.copies, env);
  agent.share = expand_all(profile.share, env);
  agent.hide = expand_all(profile.hide, env);
  return agent;
}

std::vector<Agent> installed_agents(const Profiles& profiles, const contexts::Environment& env) {
  std::vector<Agent> agents;
  for (const auto& profile : profiles.all()) {
    for (const auto& command : profile->commands) {
      auto program = inspect_program(command, variable(env, "PATH"), "/");
      if (!program) continue;
      auto agent = examine_agent(std::move(*program), {}, "/", profiles, env);
      if (agent.profile == profile) agents.push_back(std::move(agent));
    }
  }
  return agents;
}

bool is_out_of_reach(const contexts::ContextSpec& context, const std::string& path) {
  if (context.isolation == contexts::Isolation::none) return false;
  const auto is_at_or_in = [&path](const std::string& folder) { return is_below(path, folder); };
  const auto touches = [&path](const std::string& folder) {
    return is_below(path, folder) || is_below(folder, path);
  };
  const auto& protect = context.protect;
  if (std::any_of(protect.begin(), protect.end(), is_at_or_in)) return true;
  if (std::any_of(context.hide.begin(), context.hide.end(), is_at_or_in)) return true;
  return !context.home.empty() && is_below(path, context.home) &&
         std::none_of(context.share.begin(), context.share.end(), touches);
}

AgentIdentity identity_of(const Agent& agent,
                          const std::function<bool(const std::string&)>& is_safe) {
  AgentIdentity identity;
  identity.executable = agent.program.executable;
  identity.executable_id = file_id(agent.program.executable);
  identity.script = agent.program.script;
  for (const auto& file : agent.runtimes) identity.runtimes.push_back(file.id);
  for (const auto& file : agent.scripts) identity.scripts.push_back(file.id);
  for (const auto& path : agent.program.interpreters) {
    identity.launchers.push_back(file_id(path));
  }
  if (!agent.program.env.empty()) identity.env = file_id(agent.program.env);
  if (!agent.profile) return identity;
  identity.profile = agent.profile->name;
  identity.helpers = agent.helpers;
  identity.servers = agent.servers;
  for (const auto& folder : agent.packages) {
    if (is_safe(folder)) identity.packages.push_back(folder);
  }
  for (const auto& folder : agent.copies) {
    if (is_safe(folder)) identity.copies.push_back(resolve_folder(folder));
  }
  return identity;
}

}  // namespace routerd
