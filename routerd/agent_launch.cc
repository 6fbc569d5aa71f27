// Agents: programs whose children are routed.

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>

#include "routerd/exec_call.h"
#include "routerd/program.h"

namespace routerd {
namespace {

/// An agent's memory has the platform's credentials, and its working folder is the user's, too.
/// Only the soft limit: who wants a core can have one, and children inherit what they may have.
void leave_no_core(wire::ProcessState& state) {
  for (auto& limit : state.rlimits) {
    if (limit.resource == RLIMIT_CORE) limit.soft = 0;
  }
}

/// By file name, too: this decides whether children are routed at all, and a wrong "yes" costs
/// nothing.
bool is_ai_agent(const Agent& agent, const Profiles& profiles) {
  const auto& program = agent.program;
  for (const auto& path : {program.path, program.script, program.executable}) {
    if (profiles.of_command(path.substr(path.rfind('/') + 1)) != nullptr) return true;
  }
  return agent.profile != nullptr;
}

tl::unexpected<base::Error> cannot_enforce(const Agent& agent, const base::Error& why) {
  const std::string part = agent.static_part();
  const std::string kind = part.empty() ? "" : "a statically linked program: ";
  return base::failure(part.empty() ? agent.program.executable : part, why.code,
                       kind + "its children would not be routed, so it is not started; " +
                           why.operation + ": " + why.detail);
}

wire::Confinement confinement(const HostedContext& context, const Launch& launch) {
  wire::Confinement made;
  made.mechanism = static_cast<std::uint8_t>(launch.mechanism);
  made.stub = context.context->airlock_folder() + "/airlock-stub";
  return made;
}

}  // namespace

/// A shim may exec others before the program it stands for; that is the first one that is neither a
/// script nor a shell, and it is the agent from then on.
void ExecRouter::settle_shim(HostedContext& from, const Call& call, std::uint64_t launch) const {
  auto program = inspect_program(call.request.path, {}, call.request.cwd);
  if (!program || !program->script.empty()) return;
  const auto name = program->executable.substr(program->executable.rfind('/') + 1);
  for (const char* shell : {"bash", "dash", "sh", "busybox", "env"}) {
    if (name == shell) return;
  }
  if (Launch* found = from.launches.find(launch)) {
    adopt(from, *found,
          examine_agent(*program, call.request.argv.strings(), call.request.cwd,
                        environment_.profiles, found->start_env));
    from.env_routes.clear();
  }
}

/// Prepares the program for having its children routed, where the context asks for that.
base::Result<void> ExecRouter::launch_agent(HostedContext& context, Call& call) {
  const auto& spec = context.spec();
  const bool is_run = call.request.policy.launch;
  if (spec.child_context.empty()) {
    if (!is_run) return {};
    return base::failure("context '" + spec.name + "' has no child_context", EINVAL,
                         "nothing would be routed");
  }
  contexts::Environment env = call.request.env.strings();
  auto program = inspect_program(call.request.path, variable(env, "PATH"), call.request.cwd);
  Agent agent;
  if (program) {
    agent = examine_agent(*program, call.request.argv.strings(), call.request.cwd,
                          environment_.profiles, env);
  }
  const bool wanted = is_run || spec.route_child == contexts::RouteChild::always ||
                      (spec.route_child == contexts::RouteChild::automatic && program &&
                       is_ai_agent(agent, environment_.profiles));
  if (!wanted) return {};
  if (!program) {
    const auto& error = program.error();
    return base::failure(error.operation, error.code,
                         error.code == ENOENT ? "command not found" : "cannot be executed");
  }
  auto chosen = choose_mechanism(spec.enforce, context.offers, agent.has_static_part(),
                                 environment_.development);
  if (!chosen) return cannot_enforce(agent, chosen.error());
  if (agent.has_static_part() && chosen->mechanism == contexts::Mechanism::preload) {
    spdlog::warn("DEVELOPMENT: what {} starts is not routed", agent.static_part());
  }
  call.record.enforce = contexts::name_of(chosen->mechanism);
  Launch& launch = context.launches.add(
      {.start_env = env,
       .base = is_run ? contexts::EnvPolicy::Base::inherit : contexts::EnvPolicy::Base::clean,
       .mechanism = chosen->mechanism,
       .has_preload_variable = !program->is_musl});
  adopt(context, launch, agent);
  if (launch.mechanism == contexts::Mechanism::farm) {
    if (auto confined = confine(context, call, agent, launch); !confined) return confined;
  } else {
    call.confined.order = confinement(context, launch);
  }
  if (launch.has_preload_variable) {
    add_preload(env, context.context->airlock_folder() + "/libairlock-preload.so");
  }
  set_variable(env, Launches::kLaunchVariable, std::to_string(launch.id));
  call.request.env = to_list(env);
  leave_no_core(call.request.state);
  return {};
}

base::Result<void> ExecRouter::confine(HostedContext& context, Call& call, const Agent& agent,
                                       Launch& launch) {
  const contexts::Environment env = call.request.env.strings();
  const FarmSite site{context.spec(), variable(env, "PATH"), variable(env, "HOME"),
                      call.request.cwd, launch.agent.copies};
  auto confined = confine_by_farm(context, agent, site);
  if (!confined) return tl::unexpected<base::Error>(confined.error());
  call.confined = std::move(*confined);
  launch.kept = call.confined.kept;
  if (!call.confined.order.preload_file.empty()) launch.has_preload_variable = false;
  // What was looked into is what runs: nothing is searched in the agent's view.
  const bool is_searched = call.request.path.find('/') == std::string::npos;
  if (is_searched) call.request.path = agent.program.found;
  return {};
}

/// From now on `agent` is what `launch` is about.
void ExecRouter::adopt(const HostedContext& context, Launch& launch, const Agent& agent) const {
  std::vector<std::string> names = {context.spec().child_context};
  for (const auto& rule : context.spec().routes) names.push_back(rule.to);
  launch.agent = identity_of(agent, [this, &names](const std::string& path) {
    return std::all_of(names.begin(), names.end(), [this, &path](const std::string& name) {
      if (name.empty()) return true;
      const HostedContext* child = find_(name);
      return child != nullptr && contexts::is_isolated(child->context->tier()) &&
             is_out_of_reach(child->spec(), path);
    });
  });
  launch.pass_env = agent.profile ? agent.profile->pass_env : std::vector<std::string>{};
  launch.block_env = agent.profile ? agent.profile->block_env : std::vector<std::string>{};
}

}  // namespace routerd
