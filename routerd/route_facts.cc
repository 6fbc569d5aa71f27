// What the rules of routing may ask about a request.

#include <filesystem>

#include "routerd/ancestry.h"
#include "routerd/exec_call.h"
#include "routerd/program.h"

namespace routerd {

std::string absolute(const std::string& cwd, std::string_view path) {
  return path.starts_with('/') ? std::string(path) : cwd + "/" + std::string(path);
}

std::string through_proc(pid_t pid, const std::string& path) {
  return "/proc/" + std::to_string(pid) + "/root" + path;
}

namespace {

std::string value_of(const std::vector<std::string_view>& env, std::string_view name) {
  for (const auto entry : env) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return {};
}

std::string resolved(const std::string& path) {
  std::error_code error;
  auto result = std::filesystem::canonical(path, error);
  return error ? "" : result.string();
}

}  // namespace

/// Without the variable (`env -i`, a helper that gets its environment by a pipe) the ancestors
/// tell.
const Launch& ExecRouter::launch_of(const HostedContext& from, const Call& call) {
  const auto env = call.request.env.views();
  if (from.launches.size() < 2 || from.launches.named_in(env) != nullptr) {
    return from.launches.find(env);
  }
  const std::string entry =
      std::string(Launches::kLaunchVariable) + "=" +
      inherited_variable(call.peer.pid, from.context->init_pid(), Launches::kLaunchVariable);
  return from.launches.find({entry});
}

/// Only what a rule may ask for: a look at files costs more than the decision.
RouteFacts ExecRouter::facts_of(const HostedContext& from, const Call& call, const Launch& launch) {
  const auto& request = call.request;
  RouteFacts facts;
  facts.program = absolute(request.cwd, request.path);
  facts.stub_id = from.stub_id;
  facts.argv = request.argv.views();
  if (!request.script.empty()) facts.script = absolute(request.cwd, request.script);
  facts.agent = launch.agent;
  const bool has_own_files = !launch.agent.profile.empty() || !launch.agent.scripts.empty();
  // To the agent the programs of covered folders are shims; this process sees what they stand for.
  const bool is_by_farm = launch.mechanism == contexts::Mechanism::farm;
  const auto seen = [&](const std::string& path) {
    return file_id(is_by_farm ? path : through_proc(call.peer.pid, path));
  };
  if (is_below(facts.program, from.context->airlock_folder())) {
    facts.program_id = from.stub_id;
  } else if (has_own_files || facts.program.ends_with("/airlock-stub")) {
    facts.program_id = seen(facts.program);
  }
  if (has_own_files) {
    // The platform sees the files that this process sees, and its agents' are of no other context.
    if (!launch.agent.copies.empty()) facts.resolved_program = resolved(facts.program);
    const auto script = script_word(launch.agent, facts.program_id, facts.argv);
    if (!script.empty()) {
      const auto path = absolute(request.cwd, script);
      facts.script_id = seen(path);
      facts.resolved_script = resolved(path);
    }
  }
  facts.is_launched_process = is_shim(launch.agent.script) &&
                              parent_of(parent_of(call.peer.pid)) == from.context->init_pid();
  facts.requested_context = value_of(request.env.views(), "SANDBOX_ROUTE_TO_CONTEXT");
  return facts;
}

Decision ExecRouter::explain(const HostedContext& from, const std::string& program,
                             const std::vector<std::string>& argv) const {
  RouteFacts facts;
  const Launch& launch = from.launches.find({});
  auto found = inspect_program(program, variable(environment_.invoker_env, "PATH"), "/");
  facts.program = found ? found->path : program;
  facts.program_id = file_id(facts.program);
  facts.resolved_program = facts.program;
  facts.argv.assign(argv.begin(), argv.end());
  facts.agent = launch.agent;
  if (const auto script = script_word(facts.agent, facts.program_id, facts.argv);
      script.starts_with('/')) {
    facts.script_id = file_id(std::string(script));
    facts.resolved_script = resolved(std::string(script));
  }
  return decide(from.spec(), facts);
}

}  // namespace routerd
