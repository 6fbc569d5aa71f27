#pragma once

#include <chrono>

#include "base/unique_fd.h"
#include "routerd/agent.h"
#include "routerd/hosted_context.h"
#include "routerd/peer.h"
#include "routerd/route_log.h"
#include "routerd/routing.h"
#include "wire/channel.h"

namespace routerd {

/// What the daemon was started with; shared by all requests.
struct ExecEnvironment {
  contexts::Environment invoker_env;
  std::vector<std::string> secrets;
  /// Agents may run although nothing enforces their routing.
  bool development = false;
  Profiles profiles;
  /// Route records have the arguments, for the audit log.
  bool records_argv = false;
};

/// Takes exec requests, decides, composes and hands over. One for the daemon.
class ExecRouter {
 public:
  using FindContext = std::function<HostedContext*(const std::string&)>;

  ExecRouter(FindContext find, RouteLog& log, ExecEnvironment environment)
      : find_(std::move(find)), log_(log), environment_(std::move(environment)) {}

  using Clock = std::chrono::steady_clock;

  /// A request from the router socket of `from`: a program of that context wants to run another.
  void route(HostedContext& from, wire::Frame frame, base::UniqueFd connection,
             Clock::time_point accepted);

  /// A request from the control socket, whose peer may use it: runs in request.policy.context.
  void run(const Peer& peer, wire::Frame frame, base::UniqueFd connection,
           Clock::time_point accepted, ApiRequest asked_by = {});

  /// A FileJob from the control socket: airlock-files in a context, which nothing routes.
  void run_files(const Peer& peer, wire::Frame frame, base::UniqueFd connection,
                 Clock::time_point accepted, ApiRequest asked_by = {});

  const Profiles& profiles() const { return environment_.profiles; }

  /// Gives a program of the daemon's own, with everything about it decided, to a context.
  /// Errors as Handover::give.
  base::Result<void> start(HostedContext& target, wire::ExecRequest request,
                           base::UniqueFd connection, std::vector<base::UniqueFd> fds);

  /// After a change of `target`: its shells hear of it.
  void update_shells(HostedContext& target) const;

  /// The channel of a shell, which is started if there is none. Errors as Shells::start.
  base::Result<Handover*> shell_of(HostedContext& target, const Shells::Key& key);

  /// As whom programs of `peer` run in `target`. EPERM: not as root, for one who is not.
  static base::Result<wire::Credentials> credentials_in(const HostedContext& target,
                                                        const Peer& peer,
                                                        const std::string& from = {});

  /// What route() would decide for a program of `from`, without running anything.
  Decision explain(const HostedContext& from, const std::string& program,
                   const std::vector<std::string>& argv) const;

 private:
  struct Call;
  /// Takes the connection if the request can be read.
  base::Result<Call> receive(wire::Frame frame, base::UniqueFd& connection,
                             Clock::time_point accepted);
  void settle_shim(HostedContext& from, const Call& call, std::uint64_t launch) const;
  static const Launch& launch_of(const HostedContext& from, const Call& call);
  static RouteFacts facts_of(const HostedContext& from, const Call& call, const Launch& launch);
  static base::Result<void> confine(HostedContext& context, Call& call, const Agent& agent,
                                    Launch& launch);
  void adopt(const HostedContext& context, Launch& launch, const Agent& agent) const;
  void send_to(HostedContext& from, HostedContext& target, Call& call, const Launch& launch);
  void run_here(HostedContext& from, Call& call, const Launch& launch);
  void refuse(Call& call, int exit_code, std::string rule, std::string reason, int error = 0);
  void run_in_shell(HostedContext& target, Call& call);
  contexts::Environment shell_env(const HostedContext& target,
                                  const wire::Credentials& credentials) const;
  /// `channel` is that of the context's spawner or of one of its shells.
  void hand_over(const HostedContext& target, Handover& channel, Call& call);
  static void settle_fds(const HostedContext& target, Call& call);
  EnvRoute& env_route(HostedContext& from, const HostedContext& target, const Launch& launch) const;
  base::Result<void> launch_agent(HostedContext& context, Call& call);
  contexts::Environment context_env(const HostedContext& target, const Call& call) const;

  FindContext find_;
  RouteLog& log_;
  ExecEnvironment environment_;
  std::uint64_t next_job_ = 16;
};

}  // namespace routerd
