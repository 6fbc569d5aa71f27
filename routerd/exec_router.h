#pragma once

#include <chrono>

#include "base/unique_fd.h"
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
           Clock::time_point accepted);

  /// What route() would decide for a program of `from`, without running anything.
  Decision explain(const HostedContext& from, const std::string& program,
                   const std::vector<std::string>& argv) const;

 private:
  struct Call;
  base::Result<Call> receive(wire::Frame frame, base::UniqueFd connection,
                             Clock::time_point accepted);
  void settle_shim(HostedContext& from, const Call& call, const Launch& launch) const;
  static RouteFacts facts_of(const HostedContext& from, const Call& call, const Launch& launch);
  void send_to(HostedContext& from, HostedContext& target, Call& call, const Launch& launch);
  void run_here(HostedContext& from, Call& call, const Launch& launch);
  void refuse(Call& call, int exit_code, std::string rule, std::string reason, int error = 0);
  void hand_over(HostedContext& target, Call& call);
  base::Result<void> apply_user(const HostedContext& target, Call& call) const;
  const contexts::EnvFilter& filter(HostedContext& from, const HostedContext& target,
                                    const Launch& launch) const;
  base::Result<void> launch_agent(HostedContext& context, Call& call);
  contexts::Environment context_env(const HostedContext& target, const Call& call) const;

  FindContext find_;
  RouteLog& log_;
  ExecEnvironment environment_;
  std::uint64_t next_job_ = 16;
};

}  // namespace routerd
