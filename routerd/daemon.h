#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "contexts/runtime_dir.h"
#include "routerd/exec_router.h"
#include "routerd/hosted_context.h"
#include "routerd/route_log.h"

namespace routerd {

struct DaemonOptions {
  /// Folder of the airlock programs.
  std::string programs;
  /// Contexts may be weaker than `isolated` (design: --development).
  bool development = false;
  /// Ends when its first client goes away (`airlock run`).
  bool is_embedded = false;
  std::vector<std::string> secrets;
  /// Forces a tier instead of the strongest that works; empty = probe.
  std::string tier;
};

/// Owns everything that runs: the event loop, the contexts, their router sockets, the control
/// socket. Single-threaded.
class Daemon {
 public:
  Daemon(contexts::RuntimeDir runtime, DaemonOptions options);
  ~Daemon();

  /// Finds out what this machine can isolate with. ENOTSUP with the reasons when production needs
  /// more than there is.
  base::Result<void> choose_tier();
  /// Opens the control socket.
  base::Result<void> listen();
  /// Serves a client that is connected already; the daemon of `airlock run` ends with it.
  void adopt_client(base::UniqueFd socket);
  /// Runs until stop() or SIGTERM, SIGINT, SIGHUP; then ends all contexts.
  void run();
  void stop();
  /// Outlive the client of adopt_client().
  void keep() { is_kept_ = true; }

  base::Result<HostedContext*> create(contexts::ContextSpec spec);
  base::Result<contexts::Destroyed> destroy(const std::string& name);
  HostedContext* find(const std::string& name);

  const std::map<std::string, std::unique_ptr<HostedContext>>& hosted() const { return hosted_; }
  contexts::Tier tier() const { return tier_; }
  const contexts::RuntimeDir& runtime() const { return runtime_; }
  const DaemonOptions& options() const { return options_; }
  RouteLog& route_log() { return log_; }
  ExecRouter& router() { return router_; }
  /// Why stronger tiers than tier() are not used.
  const std::vector<std::string>& tier_reasons() const { return tier_reasons_; }

 private:
  void context_ended(const std::string& name);
  base::Result<std::unique_ptr<Listener>> open_router(const std::string& name);
  std::shared_ptr<FrameSession> accept_client(base::UniqueFd socket);
  void take_init_frame(const std::string& name, const wire::Frame& frame);

  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  contexts::RuntimeDir runtime_;
  DaemonOptions options_;
  contexts::Tier tier_ = contexts::Tier::none;
  bool is_kept_ = false;
  std::vector<std::string> tier_reasons_;
  RouteLog log_;
  ExecRouter router_;
  std::map<std::string, std::unique_ptr<HostedContext>> hosted_;
  std::unique_ptr<Listener> control_;
};

}  // namespace routerd
