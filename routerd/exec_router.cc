#include "routerd/exec_router.h"

#include <pwd.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "routerd/ancestry.h"
#include "routerd/exec_call.h"
#include "routerd/fd_rules.h"
#include "routerd/terminal_rules.h"
#include "routerd/user.h"
#include "wire/limits.h"

namespace routerd {

std::int64_t real_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

namespace {

base::Result<void> check(const wire::ExecRequest& request, std::size_t fd_count) {
  std::set<std::uint32_t> numbers(request.fd_numbers.begin(), request.fd_numbers.end());
  numbers.insert(request.terminal_fds.begin(), request.terminal_fds.end());
  const std::size_t count = fd_count + request.terminal_fds.size();
  if (request.fd_numbers.size() != fd_count || numbers.size() != count ||
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

std::string_view name_of(wire::CaughtBy by) {
  constexpr std::string_view names[] = {"interposer", "farm", "binfmt", "ptrace"};
  return names[static_cast<std::size_t>(by)];
}

}  // namespace

wire::StringList to_list(const contexts::Environment& env) {
  wire::StringList list;
  for (const auto& entry : env) list.add(entry);
  return list;
}

wire::StringList with_own_home(const HostedContext& target, const wire::StringList& env) {
  const std::string& home = target.context->own_home();
  if (home.empty()) return env;
  contexts::Environment entries = env.strings();
  if (variable(entries, "HOME") == target.spec().home) set_variable(entries, "HOME", home);
  return to_list(entries);
}

namespace {

/// Arguments for the audit log: not all of very many, nor all of a very long one.
std::vector<std::string> without_secrets(const wire::StringList& argv,
                                         const std::vector<std::string>& secrets) {
  constexpr std::size_t kMostArguments = 64, kLongest = 512;
  std::vector<std::string> words;
  for (const auto word : argv.views()) {
    if (words.size() == kMostArguments) break;
    const bool is_secret = std::any_of(
        secrets.begin(), secrets.end(),
        [word](const std::string& secret) { return word.find(secret) != std::string_view::npos; });
    words.emplace_back(is_secret ? "(contains a secret)" : word.substr(0, kLongest));
  }
  return words;
}

}  // namespace

base::Result<ExecRouter::Call> ExecRouter::receive(wire::Frame frame, base::UniqueFd& connection,
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
  call.record.argc = call.request.argv.count();
  if (environment_.records_argv) {
    call.record.argv = without_secrets(call.request.argv, environment_.secrets);
  }
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

void ExecRouter::route(HostedContext& from, wire::Frame frame, base::UniqueFd connection,
                       Clock::time_point accepted) {
  if (frame.type != wire::MessageType::exec_request) return;
  const pid_t sender = frame.sender;
  auto received = receive(std::move(frame), connection, accepted);
  if (!received) return refuse_unread(connection.borrow(), received.error());
  Call& call = *received;
  call.record.from = from.spec().name;
  // A connection is its maker's: somebody else who was given it asks in the maker's name.
  if (sender != call.peer.pid || !from.context->contains(call.connection.borrow(), call.peer.pid)) {
    return refuse(call, kRefused, "identity",
                  "the request does not come from context '" + from.spec().name + "'");
  }
  const Launch& launch = launch_of(from, call);
  call.record.enforce = contexts::name_of(launch.mechanism);
  call.record.caught_by = name_of(call.request.caught_by);
  RouteFacts facts = facts_of(from, call, launch);
  Decision decision = decide(from.spec(), facts);
  if (decision.outcome == Outcome::run_here) {
    // Only now: who asks matters for nothing else.
    facts.is_called_by_agent = is_started_by(launch.agent, call.peer.pid, from.context->init_pid());
    decision = decide(from.spec(), facts);
  }
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

EnvRoute& ExecRouter::env_route(HostedContext& from, const HostedContext& target,
                                const Launch& launch) const {
  const auto key = std::pair(launch.id, target.spec().name);
  if (const auto found = from.env_routes.find(key); found != from.env_routes.end()) {
    return found->second;
  }
  contexts::EnvPolicy policy = target.spec().env;
  policy.secrets = environment_.secrets;
  policy.pass_env.insert(policy.pass_env.end(), launch.pass_env.begin(), launch.pass_env.end());
  policy.block_env.insert(policy.block_env.end(), launch.block_env.begin(), launch.block_env.end());
  const bool inherits = launch.base == contexts::EnvPolicy::Base::inherit;
  EnvRoute::From parts{inherits ? launch.start_env : environment_.invoker_env, launch.start_env,
                       launch.base};
  if (from.env_routes.size() >= Launches::kKept) from.env_routes.clear();
  return from.env_routes.emplace(key, EnvRoute(std::move(parts), policy)).first->second;
}

void ExecRouter::send_to(HostedContext& from, HostedContext& target, Call& call,
                         const Launch& launch) {
  const auto& translated = env_route(from, target, launch).translate(call.request.env);
  call.request.env = with_own_home(target, translated.env);
  call.record.blocked_env = translated.blocked;
  target.is_claimable = false;
  // What a stub says of these is ignored: they are the control socket's to set.
  call.request.policy = {};
  call.request.search_path = false;
  call.request.on_disconnect = wire::OnDisconnect::kill_group;
  call.request.on_stub_kill = wire::KillScope::group;
  call.request.terminal_fds.clear();
  settle_fds(target, call);
  call.request.is_service = false;
  auto user = credentials_in(target, call.peer, call.record.from);
  if (!user) return refuse(call, kRefused, "user", user.error().message());
  call.request.credentials = std::move(*user);
  hand_over(target, *target.handover, call);
}

/// An agent gets what its invoker has open; but not the invoker's terminal.
void ExecRouter::settle_fds(const HostedContext& target, Call& call) {
  const auto& spec = target.spec();
  auto& refused = call.record.refused_fds;
  refused = settle_terminals(spec.terminals, call.request, call.fds);
  if (call.request.policy.launch) return;
  const bool stdio_only = spec.stdio_only || call.request.policy.stdio_only;
  for (auto& each : filter_fds(call.request, call.fds, stdio_only)) {
    refused.push_back(std::move(each));
  }
}

base::Result<wire::Credentials> ExecRouter::credentials_in(const HostedContext& target,
                                                           const Peer& peer,
                                                           const std::string& from) {
  const auto& spec = target.spec();
  const auto own = target.context->own_ids();
  if (spec.user.empty()) {
    return own ? wire::Credentials{own->uid, own->gid, {}} : peer.credentials;
  }
  auto user = find_user(spec.user);
  if (!user) return tl::unexpected<base::Error>(user.error());
  const auto& allowed = spec.allow_root_from;
  if (user->uid == 0 && peer.credentials.uid != 0 &&
      std::find(allowed.begin(), allowed.end(), from) == allowed.end()) {
    return base::failure("run as root in context '" + spec.name + "'", EPERM,
                         "the caller is not root and allow_root_from does not name its context");
  }
  return wire::Credentials{user->uid, user->gid, {}};
}

void ExecRouter::hand_over(const HostedContext& target, Handover& channel, Call& call) {
  const std::uint64_t job = next_job_++;
  call.record.job = job;
  auto& time_limit = call.request.policy.time_limit_ms;
  const auto longest = target.spec().limits.exec_time_ms;
  if (longest != 0 && (time_limit == 0 || time_limit > longest)) time_limit = longest;
  call.record.to = target.spec().name;
  for (auto& fd : call.confined.fds) call.fds.push_back(std::move(fd));
  auto given = channel.give({job, std::move(call.request), std::move(call.confined.order)},
                            call.connection, std::move(call.fds));
  if (!given) {
    return refuse(call, kRefused, call.record.rule,
                  "context '" + target.spec().name + "' takes no jobs: " + given.error().message(),
                  given.error().code);
  }
  if (target.lifetime) target.lifetime->use();
  call.record.outcome = "run_in";
  call.record.latency_us =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - call.accepted).count();
  log_.add(std::move(call.record));
}

namespace {

/// To the agent `path` is a shim, so executing it by name would only ask again.
bool is_shimmed(const HostedContext& context, const Launch& launch, const std::string& path) {
  std::error_code error;
  const std::filesystem::path file(path);
  const auto folder = std::filesystem::canonical(file.parent_path(), error);
  const auto entry = folder / file.filename();
  return !error && context.farm && context.farm->farm().covered().contains(folder) &&
         std::find(launch.kept.begin(), launch.kept.end(), entry) == launch.kept.end() &&
         !context.farm->farm().is_kept_link(entry);
}

}  // namespace

// The stub execs the original in place: still the agent, so still with the interposer.
void ExecRouter::run_here(HostedContext& from, Call& call, const Launch& launch) {
  if (call.record.rule == "agent-shim") settle_shim(from, call, launch.id);
  contexts::Environment env = call.request.env.strings();
  wire::RunHere order;
  order.path = call.request.path;
  if (launch.has_preload_variable) {
    add_preload(env, from.context->airlock_folder() + "/libairlock-preload.so");
    order.env.add("LD_PRELOAD=" + variable(env, "LD_PRELOAD"));
  }
  order.env.add(std::string(Launches::kLaunchVariable) + "=" + std::to_string(launch.id));
  base::UniqueFd program;
  if (launch.mechanism == contexts::Mechanism::farm) {
    const auto path = absolute(call.request.cwd, call.request.path);
    program = open_program(path);
    if (!program && is_shimmed(from, launch, path)) {
      return refuse(call, kRefused, call.record.rule,
                    path + " is a script that came after its agent was started: start it again",
                    EACCES);
    }
  }
  order.in_own_namespaces = launch.mechanism == contexts::Mechanism::binfmt;
  const int passed[] = {program.borrow()};
  (void)wire::send_message(call.connection.borrow(), order, std::span(passed, program ? 1 : 0),
                           MSG_DONTWAIT);
  if (order.in_own_namespaces) {
    const auto path = absolute(call.request.cwd, call.request.path);
    const FileId id = file_id(through_proc(call.peer.pid, path));
    // If that fails the stub hears of it: the connection ends.
    (void)from.handover->tell(
        wire::RunAgain{from.context->airlock_folder() + "/airlock-stub", id.device, id.inode},
        std::move(call.connection));
  }
  call.record.outcome = "run_here";
  call.record.to = from.spec().name;
  log_.add(std::move(call.record));
}

base::Result<void> ExecRouter::start(HostedContext& target, wire::ExecRequest request,
                                     base::UniqueFd connection, std::vector<base::UniqueFd> fds) {
  return target.handover->give({next_job_++, std::move(request)}, connection, std::move(fds));
}

void ExecRouter::run(const Peer& peer, wire::Frame frame, base::UniqueFd connection,
                     Clock::time_point accepted, ApiRequest asked_by) {
  auto received = receive(std::move(frame), connection, accepted);
  if (!received) return refuse_unread(connection.borrow(), received.error());
  Call& call = *received;
  call.peer = peer;
  call.record.asked_by = std::move(asked_by);
  call.record.rule = call.request.policy.launch ? "run" : "exec";
  const std::string name = call.request.policy.context;
  HostedContext* target = find_(name);
  if (target == nullptr) {
    return refuse(call, kRefused, "exec",
                  "there is no context '" + name + "'; 'airlock ctx ls' lists them");
  }
  auto user = credentials_in(*target, call.peer);
  if (!user) return refuse(call, kRefused, "user", user.error().message());
  call.request.credentials = std::move(*user);
  target->is_claimable = false;
  if (!call.request.policy.shell.name.empty()) return run_in_shell(*target, call);
  if (call.request.cwd.empty()) call.request.cwd = target->spec().cwd;
  settle_fds(*target, call);
  if (call.request.policy.env == wire::EnvMode::context) {
    call.request.env = with_own_home(*target, to_list(context_env(*target, call)));
  }
  if (auto launched = launch_agent(*target, call); !launched) {
    return refuse(call, launched.error().code == ENOENT ? kNotFound : kRefused, "exec",
                  launched.error().message(), launched.error().code);
  }
  call.request.is_service = false;
  hand_over(*target, *target->handover, call);
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

}  // namespace routerd
