#include "routerd/exec_router.h"

#include <pwd.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "routerd/fd_rules.h"
#include "routerd/program.h"
#include "routerd/user.h"
#include "wire/limits.h"

namespace routerd {

using Clock = ExecRouter::Clock;

/// One request while it is being decided.
struct ExecRouter::Call {
  wire::ExecRequest request;
  std::vector<base::UniqueFd> fds;
  base::UniqueFd connection;
  Peer peer;
  RouteRecord record;
  Clock::time_point accepted;
};

namespace {

constexpr int kRefused = 126;
constexpr int kNotFound = 127;

std::int64_t real_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

base::Result<void> check(const wire::ExecRequest& request, std::size_t fd_count) {
  std::set<std::uint32_t> numbers(request.fd_numbers.begin(), request.fd_numbers.end());
  if (request.fd_numbers.size() != fd_count || numbers.size() != fd_count ||
      (!numbers.empty() && *numbers.rbegin() > (1u << 20))) {
    return base::failure("descriptors do not match their numbers", EBADMSG);
  }
  if (request.path.empty()) return base::failure("no program", ENOENT);
  if (!request.cwd.empty() && request.cwd.front() != '/') {
    return base::failure("working directory " + request.cwd, EINVAL, "expected an absolute path");
  }
  for (const auto* list : {&request.argv, &request.env}) {
    for (const auto entry : list->views()) {
      if (entry.size() >= wire::kMaxArgString) return base::failure(request.path, E2BIG);
    }
  }
  return {};
}

std::string value_of(const std::vector<std::string_view>& env, std::string_view name) {
  for (const auto entry : env) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return {};
}

wire::StringList to_list(const contexts::Environment& env) {
  wire::StringList list;
  for (const auto& entry : env) list.add(entry);
  return list;
}

/// The path as it is seen from here, for a process of another mount namespace.
std::string through_proc(pid_t pid, const std::string& cwd, const std::string& path) {
  const std::string root = "/proc/" + std::to_string(pid) + "/root";
  return root + (path.starts_with('/') ? path : cwd + "/" + path);
}

}  // namespace

base::Result<ExecRouter::Call> ExecRouter::receive(wire::Frame frame, base::UniqueFd connection,
                                                   Clock::time_point accepted) {
  auto request = wire::decode<wire::ExecRequest>(frame.payload);
  if (!request) return tl::unexpected<base::Error>(request.error());
  auto peer = peer_of(connection.borrow());
  if (!peer) return tl::unexpected<base::Error>(peer.error());
  if (auto valid = check(*request, frame.fds.size()); !valid) {
    return tl::unexpected<base::Error>(valid.error());
  }
  Call call;
  call.request = std::move(*request);
  call.fds = std::move(frame.fds);
  call.connection = std::move(connection);
  call.peer = std::move(*peer);
  call.accepted = accepted;
  call.record.time_ms = real_time_ms();
  call.record.pid = call.peer.pid;
  call.record.uid = call.peer.credentials.uid;
  call.record.program = call.request.path;
  return call;
}

namespace {

/// The answer to a request that could not even be read as one.
void refuse_unread(int connection, const base::Error& error) {
  (void)wire::send_message(connection, wire::NotStarted{kRefused, error.code, error.message()}, {},
                           MSG_DONTWAIT);
}

}  // namespace

void ExecRouter::refuse(Call& call, int exit_code, std::string rule, std::string reason,
                        int error) {
  (void)wire::send_message(call.connection.borrow(), wire::NotStarted{exit_code, error, reason}, {},
                           MSG_DONTWAIT);
  call.record.outcome = "refuse";
  call.record.rule = std::move(rule);
  call.record.reason = std::move(reason);
  log_.add(std::move(call.record));
}

namespace {

/// proc(5); 0 if the process is gone. Programs are children of a spawner, that of the init.
pid_t parent_of(pid_t pid) {
  const auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end == std::string::npos ? 0 : std::atoi(stat->c_str() + name_end + 4);
}

}  // namespace

/// Only what a rule may ask for: a look into another process's root costs more than the decision.
RouteFacts ExecRouter::facts_of(const HostedContext& from, const Call& call, const Launch& launch) {
  const auto& request = call.request;
  RouteFacts facts;
  facts.program = request.path.starts_with('/') ? request.path : request.cwd + "/" + request.path;
  facts.stub_id = from.stub_id;
  if (launch.is_known_agent || facts.program.ends_with("/airlock-stub")) {
    facts.program_id = file_id(through_proc(call.peer.pid, request.cwd, request.path));
  }
  facts.argv = request.argv.views();
  facts.agent = launch.agent;
  facts.is_launched_process = is_shim(launch.agent.script) &&
                              parent_of(parent_of(call.peer.pid)) == from.context->init_pid();
  facts.requested_context = value_of(request.env.views(), "SANDBOX_ROUTE_TO_CONTEXT");
  return facts;
}

void ExecRouter::route(HostedContext& from, wire::Frame frame, base::UniqueFd connection,
                       Clock::time_point accepted) {
  const int socket = connection.borrow();
  if (frame.type != wire::MessageType::exec_request) return;
  base::UniqueFd for_refusal(::fcntl(socket, F_DUPFD_CLOEXEC, 3));
  auto received = receive(std::move(frame), std::move(connection), accepted);
  if (!received) return refuse_unread(for_refusal.borrow(), received.error());
  Call& call = *received;
  call.record.from = from.spec().name;
  if (!from.context->contains(call.connection.borrow(), call.peer.pid)) {
    return refuse(call, kRefused, "identity",
                  "the request does not come from context '" + from.spec().name + "'");
  }
  const Launch& launch = from.launches.find(call.request.env.views());
  const Decision decision = decide(from.spec(), facts_of(from, call, launch));
  call.record.rule = decision.rule;
  if (decision.outcome == Outcome::refuse) {
    return refuse(call, kRefused, decision.rule, decision.reason);
  }
  if (decision.outcome == Outcome::run_here) return run_here(from, call, launch);
  call.record.to = decision.context;
  HostedContext* target = find_(decision.context);
  if (target == nullptr) {
    return refuse(call, kRefused, decision.rule,
                  "context '" + decision.context + "' does not exist (any more)");
  }
  send_to(from, *target, call, launch);
}

const contexts::EnvFilter& ExecRouter::filter(HostedContext& from, const HostedContext& target,
                                              const Launch& launch) const {
  const auto key = std::pair(launch.id, target.spec().name);
  if (const auto found = from.filters.find(key); found != from.filters.end()) return found->second;
  contexts::EnvPolicy policy = target.spec().env;
  policy.secrets = environment_.secrets;
  if (from.filters.size() >= Launches::kKept) from.filters.clear();
  return from.filters.emplace(key, contexts::EnvFilter(policy, launch.start_env)).first->second;
}

void ExecRouter::send_to(HostedContext& from, HostedContext& target, Call& call,
                         const Launch& launch) {
  const contexts::Environment child = call.request.env.strings();
  const auto& env_filter = filter(from, target, launch);
  const auto composed = contexts::routed_environment({
      .invoker_env = launch.base == contexts::EnvPolicy::Base::inherit ? launch.start_env
                                                                       : environment_.invoker_env,
      .agent_start_env = launch.start_env,
      .child_env = child,
      .filter = env_filter,
      .pinned = target.spec().env.pinned,
      .base = launch.base,
  });
  call.request.env = to_list(composed.env);
  for (const auto& blocked : composed.blocked) {
    call.record.blocked_env.push_back(blocked.name + ": " +
                                      std::string(contexts::to_string(blocked.reason)));
  }
  target.is_claimable = false;
  call.record.refused_fds = filter_fds(call.request, call.fds, target.spec().stdio_only);
  // What a stub says of these is ignored: they are the control socket's to set.
  call.request.policy = {};
  call.request.search_path = false;
  call.request.on_disconnect = wire::OnDisconnect::kill_group;
  call.request.on_stub_kill = wire::KillScope::group;
  call.request.tty = wire::TtyMode::none;
  if (auto user = apply_user(target, call); !user) {
    return refuse(call, kRefused, "user", user.error().message());
  }
  hand_over(target, call);
}

base::Result<void> ExecRouter::apply_user(const HostedContext& target, Call& call) const {
  const auto& spec = target.spec();
  call.request.credentials = call.peer.credentials;
  if (spec.user.empty()) return {};
  auto user = find_user(spec.user);
  if (!user) return tl::unexpected<base::Error>(user.error());
  const auto& allowed = spec.allow_root_from;
  if (user->uid == 0 && call.peer.credentials.uid != 0 &&
      std::find(allowed.begin(), allowed.end(), call.record.from) == allowed.end()) {
    return base::failure("run as root in context '" + spec.name + "'", EPERM,
                         "the caller is not root and allow_root_from does not name its context");
  }
  call.request.credentials = {user->uid, user->gid, {}};
  return {};
}

void ExecRouter::hand_over(HostedContext& target, Call& call) {
  const std::uint64_t job = next_job_++;
  call.record.job = job;
  call.record.to = target.spec().name;
  auto given =
      target.handover->give({job, std::move(call.request)}, call.connection, std::move(call.fds));
  if (!given) {
    return refuse(call, kRefused, call.record.rule,
                  "context '" + target.spec().name + "' takes no jobs: " + given.error().message(),
                  given.error().code);
  }
  call.record.outcome = "run_in";
  call.record.latency_us =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - call.accepted).count();
  log_.add(std::move(call.record));
}

// The stub execs the original in place: still the agent, so still with the interposer.
/// A shim may exec others before the program it stands for; that is the first one that is neither a
/// script nor a shell, and it is the agent from then on.
void ExecRouter::settle_shim(HostedContext& from, const Call& call, const Launch& launch) const {
  auto program = inspect_program(call.request.path, {}, call.request.cwd);
  if (!program || !program->script.empty()) return;
  const auto name = program->executable.substr(program->executable.rfind('/') + 1);
  for (const char* shell : {"bash", "dash", "sh", "busybox", "env"}) {
    if (name == shell) return;
  }
  from.launches.settle(launch.id, program->identity());
}

void ExecRouter::run_here(HostedContext& from, Call& call, const Launch& launch) {
  if (call.record.rule == "agent-shim") settle_shim(from, call, launch);
  contexts::Environment env = call.request.env.strings();
  add_preload(env, from.context->airlock_folder() + "/libairlock-preload.so");
  wire::RunHere order{call.request.path, {}};
  order.env.add("LD_PRELOAD=" + variable(env, "LD_PRELOAD"));
  order.env.add(std::string(Launches::kLaunchVariable) + "=" + std::to_string(launch.id));
  (void)wire::send_message(call.connection.borrow(), order, {}, MSG_DONTWAIT);
  call.record.outcome = "run_here";
  call.record.to = from.spec().name;
  log_.add(std::move(call.record));
}

namespace {

/// Recognised by file name only: this decides whether children are routed at all, and a wrong
/// "yes" costs nothing.
bool is_ai_agent(const Program& program) {
  static const std::set<std::string, std::less<>> names = {"claude",  "gemini",   "codex",
                                                           "copilot", "opencode", "qwen"};
  for (const auto& path : {program.path, program.script, program.executable}) {
    if (names.contains(path.substr(path.rfind('/') + 1))) return true;
  }
  return find_agent(program.identity()) != nullptr;
}

}  // namespace

void ExecRouter::run(const Peer& peer, wire::Frame frame, base::UniqueFd connection,
                     Clock::time_point accepted) {
  const base::UniqueFd for_refusal(::fcntl(connection.borrow(), F_DUPFD_CLOEXEC, 3));
  auto received = receive(std::move(frame), std::move(connection), accepted);
  if (!received) return refuse_unread(for_refusal.borrow(), received.error());
  Call& call = *received;
  call.peer = peer;
  call.record.rule = call.request.policy.launch ? "run" : "exec";
  const std::string name = call.request.policy.context;
  HostedContext* target = find_(name);
  if (target == nullptr) {
    return refuse(call, kRefused, "exec",
                  "there is no context '" + name + "'; 'airlock ctx ls' lists them");
  }
  if (auto user = apply_user(*target, call); !user) {
    return refuse(call, kRefused, "user", user.error().message());
  }
  target->is_claimable = false;
  if (call.request.cwd.empty()) call.request.cwd = target->spec().cwd;
  if (!call.request.policy.launch) {
    const bool stdio_only = target->spec().stdio_only || call.request.policy.stdio_only;
    call.record.refused_fds = filter_fds(call.request, call.fds, stdio_only);
  }
  if (call.request.policy.env == wire::EnvMode::context) {
    call.request.env = to_list(context_env(*target, call));
  }
  if (auto launched = launch_agent(*target, call); !launched) {
    return refuse(call, launched.error().code == ENOENT ? kNotFound : kRefused, "exec",
                  launched.error().message(), launched.error().code);
  }
  call.request.tty = wire::TtyMode::none;
  hand_over(*target, call);
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
  const bool wanted =
      is_run || spec.route_child == contexts::RouteChild::always ||
      (spec.route_child == contexts::RouteChild::automatic && program && is_ai_agent(*program));
  if (!wanted) return {};
  if (!program) {
    const auto& error = program.error();
    return base::failure(error.operation, error.code,
                         error.code == ENOENT ? "command not found" : "cannot be executed");
  }
  if (program->is_static) {
    return base::failure(
        program->executable, ENOTSUP,
        "a statically linked program: its children would not be routed, so it is not started");
  }
  Launch& launch = context.launches.add(
      {.start_env = env,
       .agent = program->identity(),
       .is_known_agent = find_agent(program->identity()) != nullptr,
       .base = is_run ? contexts::EnvPolicy::Base::inherit : contexts::EnvPolicy::Base::clean});
  add_preload(env, context.context->airlock_folder() + "/libairlock-preload.so");
  set_variable(env, Launches::kLaunchVariable, std::to_string(launch.id));
  call.request.env = to_list(env);
  return {};
}

/// A clean base for programs that come from outside: the daemon's basic names, the user's HOME and
/// so on, what the context pins, and last what the request adds.
contexts::Environment ExecRouter::context_env(const HostedContext& target, const Call& call) const {
  contexts::Environment env;
  for (const auto& entry : environment_.invoker_env) {
    if (contexts::is_basic_name(entry.substr(0, entry.find('=')))) env.push_back(entry);
  }
  if (const passwd* user = ::getpwuid(call.request.credentials.uid)) {
    const bool is_own_home = call.request.credentials.uid == ::geteuid();
    if (!is_own_home || variable(env, "HOME").empty()) set_variable(env, "HOME", user->pw_dir);
    set_variable(env, "USER", user->pw_name);
    set_variable(env, "LOGNAME", user->pw_name);
    set_variable(env, "SHELL", *user->pw_shell != '\0' ? user->pw_shell : "/bin/sh");
  }
  if (variable(env, "PATH").empty()) {
    set_variable(env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  for (const auto& list : {target.spec().env.pinned, call.request.env.strings()}) {
    for (const auto& entry : list) {
      const auto equals = entry.find('=');
      if (equals == std::string::npos) continue;
      set_variable(env, entry.substr(0, equals), std::string_view(entry).substr(equals + 1));
    }
  }
  return env;
}

Decision ExecRouter::explain(const HostedContext& from, const std::string& program,
                             const std::vector<std::string>& argv) const {
  RouteFacts facts;
  const Launch& launch = from.launches.find({});
  auto found = inspect_program(program, variable(environment_.invoker_env, "PATH"), "/");
  facts.program = found ? found->path : program;
  facts.program_id = file_id(facts.program);
  facts.argv.assign(argv.begin(), argv.end());
  facts.agent = launch.agent;
  return decide(from.spec(), facts);
}

}  // namespace routerd
