#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "contexts/probe.h"
#include "contexts/runtime_dir.h"
#include "routerd/api_settings.h"
#include "routerd/audit/trail.h"
#include "routerd/exec_router.h"
#include "routerd/hosted_context.h"
#include "routerd/job_store.h"
#include "routerd/route_log.h"
#include "routerd/services/supervisor.h"

namespace routerd {

struct DaemonOptions {
  /// Folder of the airlock programs.
  std::string programs;
  /// Contexts may be weaker than `required` (--development).
  bool development = false;
  /// The weakest tier to start with.
  contexts::Tier required = contexts::Tier::userns;
  /// Ends when its first client goes away (`airlock run`).
  bool is_embedded = false;
  std::vector<std::string> secrets;
  Profiles profiles;
  /// Folders that only the platform sees.
  std::vector<std::string> hide;
  /// Forces a tier instead of the strongest that works; empty = probe.
  std::string tier;
  /// How long jobs may take to end after their SIGTERM. An embedded daemon has one client, which
  /// forwards signals by itself, and waits for nothing.
  std::chrono::milliseconds stop_grace{8000};  // docker stop and podman stop kill after 10 s
  audit::Options audit;
  /// There is an HTTP API, for which contexts have doors.
  bool serves_api = false;
};

class Drain;

/// Owns everything that runs: the event loop, the contexts, their router sockets, the control
/// socket. Single-threaded.
class Daemon {
 public:
  Daemon(contexts::RuntimeDir runtime, DaemonOptions options);
  ~Daemon();

  /// Finds out what this machine can isolate with. ENOTSUP with the reasons and what to do about it
  /// when that is weaker than DaemonOptions::required; with `development` only warns.
  base::Result<void> choose_tier();
  /// Opens the control socket.
  base::Result<void> listen();
  /// Serves a client that is connected already; the daemon of `airlock run` ends with it.
  void adopt_client(base::UniqueFd socket);
  /// Runs until stop(), SIGTERM, SIGINT (or SIGHUP, if there is no configuration to read again);
  /// then ends all contexts. A first signal gives jobs the time of DaemonOptions::stop_grace, a
  /// second one does not. False if jobs had to be killed.
  bool run();
  /// Asks the services to stop and ends when they have; called again, at once.
  void stop();
  /// Outlive the client of adopt_client().
  void keep() { is_kept_ = true; }

  base::Result<HostedContext*> create(contexts::ContextSpec spec);
  base::Result<contexts::Destroyed> destroy(const std::string& name);
  HostedContext* find(const std::string& name);
  /// Agents find what their children installed in system folders of their own. To be called when a
  /// context's child_context has changed.
  void follow_installed_programs();

  /// What SIGHUP and `reload` do: makes the daemon equal to its configuration file again, and tells
  /// what it could not do.
  using Reload = std::function<std::vector<std::string>()>;
  void on_reload(Reload reload) { reload_ = std::move(reload); }
  const Reload& reload() const { return reload_; }

  /// Services and held ports; made once, before anything is started. Null without.
  void set_services(std::unique_ptr<services::Supervisor> services);
  services::Supervisor* services() { return services_.get(); }
  boost::asio::io_context& io() { return io_; }

  JobStore& job_store() { return job_store_; }
  DoorTaker& door_taker() { return door_taker_; }
  /// Null without an API.
  void set_api_settings(std::unique_ptr<ApiSettings> settings);
  ApiSettings* api_settings() { return api_settings_.get(); }

  const std::map<std::string, std::unique_ptr<HostedContext>>& hosted() const { return hosted_; }
  contexts::Tier tier() const { return tier_; }
  const contexts::RuntimeDir& runtime() const { return runtime_; }
  const DaemonOptions& options() const { return options_; }
  RouteLog& route_log() { return log_; }
  /// Opens the audit log of DaemonOptions::audit, before there is anything to record. Errors as
  /// AuditLog::open.
  base::Result<void> open_audit();
  /// Null without one.
  audit::Trail* trail() { return trail_.get(); }
  ExecRouter& router() { return router_; }
  /// Why stronger tiers than tier() are not used.
  const std::vector<std::string>& tier_reasons() const { return tier_reasons_; }

 private:
  void context_ended(const std::string& name);
  void await_signal();
  void await_end_of_probe();
  void watch_limits();
  void drain();
  base::Result<void> free_name(const std::string& name);
  base::Result<void> complete(contexts::ContextSpec& spec) const;
  base::Result<void> add_route(HostedContext& hosted);
  base::Result<void> add_door(HostedContext& hosted);
  void open_for_jobs(HostedContext& hosted);
  base::Result<std::unique_ptr<Listener>> open_router(const std::string& name);
  base::Result<std::unique_ptr<FarmKeeper>> make_farm(contexts::Context& context);
  std::shared_ptr<FrameSession> accept_client(base::UniqueFd socket);
  /// True if whoever connected `socket` may be a program of a context of tier `uids` or `landlock`.
  /// Those of isolated ones have no path to the socket, and `none` promises nothing.
  bool is_in_context(int socket, pid_t pid) const;
  void take_init_frame(const std::string& name, const wire::Frame& frame);

  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  /// The context that showed the tier, and its end.
  contexts::ProbedTier probed_;
  boost::asio::posix::stream_descriptor probe_end_;
  contexts::RuntimeDir runtime_;
  DaemonOptions options_;
  contexts::Tier tier_ = contexts::Tier::none;
  bool is_kept_ = false;
  bool is_stopping_ = false;
  std::vector<std::string> tier_reasons_;
  RouteLog log_;
  std::unique_ptr<audit::Trail> trail_;
  boost::asio::steady_timer limits_timer_;
  ExecRouter router_;
  DoorTaker door_taker_;
  std::map<std::string, std::unique_ptr<HostedContext>> hosted_;
  std::unique_ptr<Listener> control_;
  std::unique_ptr<Drain> drain_;
  bool has_killed_jobs_ = false;
  Reload reload_;
  JobStore job_store_;
  std::unique_ptr<ApiSettings> api_settings_;
  std::unique_ptr<services::Supervisor> services_;
};

}  // namespace routerd
