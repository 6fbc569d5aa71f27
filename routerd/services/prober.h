#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "routerd/ports/table.h"
#include "routerd/services/run.h"

namespace routerd::services {

/// Asks a service until it is ready. One connection is enough in most cases: the port listens
/// already, so the question waits in the backlog until the service takes it, and the answer comes
/// as soon as there can be one.
class Prober {
 public:
  struct Means {
    boost::asio::io_context& io;
    ports::PortTable& ports;
    /// Runs a probe's command as the service.
    std::function<base::Result<std::shared_ptr<Run>>(const std::vector<std::string>&, Run::OnEnd)>
        run;
  };
  using OnReady = std::function<void()>;

  /// Begins at once; `on_ready` comes at most once, and never after this object's end.
  Prober(Means means, const ServiceSpec& spec, OnReady on_ready);

 private:
  void ask();
  void ask_again_later();
  void connect();
  void await_accept();
  void await_empty_queue();
  void await_connected();
  void await_answer();
  void run_command();
  void succeed();
  /// `action` as a handler: not called after an error, nor when this object has ended meanwhile.
  template <class Action>
  auto guarded(Action action) {
    return [action, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
      if (!error && !alive.expired()) action();
    };
  }

  Means means_;
  Probe probe_;
  ports::PortKey port_;
  OnReady on_ready_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor connection_;
  std::shared_ptr<Run> run_;
  std::string answer_;
  /// Between two questions; grows by a quarter, so that little is lost of a long start.
  std::chrono::milliseconds pause_{4};
  std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);
};

/// ENOTSUP: with Reach::from_here off, probes by connection need a mark that only CAP_NET_ADMIN may
/// set.
base::Result<void> check_can_probe(const ports::Reach& reach);

}  // namespace routerd::services
