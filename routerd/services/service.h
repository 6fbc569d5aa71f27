#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>

#include "contexts/environment.h"
#include "routerd/ports/table.h"
#include "routerd/services/identity.h"
#include "routerd/services/log_file.h"
#include "routerd/services/machine.h"
#include "routerd/services/prober.h"
#include "routerd/services/run.h"

namespace routerd::services {

/// What services need of their daemon.
struct Host {
  boost::asio::io_context& io;
  ports::PortTable& ports;
  Launcher launch;
  /// Folder of the logs; there.
  std::string log_folder;
  /// Where the control context's programs find libairlock-bind.so and the sockets of their ports.
  std::function<std::string()> airlock_folder;
  /// The daemon's own.
  contexts::Environment environment;
};

/// A service of the configuration and its program, as long as it is configured.
class Service {
 public:
  /// The log pipe is made here; EMFILE and the like.
  static base::Result<std::unique_ptr<Service>> create(Host& host, ServiceSpec spec,
                                                       Identity identity);

  const ServiceSpec& spec() const { return spec_; }
  const Identity& identity() const { return identity_; }
  const Machine& machine() const { return machine_; }
  const LogFile& log() const { return log_; }
  int pid() const { return run_ ? run_->pid() : 0; }

  void start();
  void restart();
  /// `on_stopped` is called when nothing of its program runs any more; at once if nothing does.
  void stop(std::function<void()> on_stopped);

  using Follower = std::function<void(std::string_view)>;
  /// `follower` gets what is added to the log from now on.
  std::uint64_t follow(Follower follower);
  void unfollow(std::uint64_t number);

 private:
  Service(Host& host, ServiceSpec spec, Identity identity);
  base::Result<void> open_pipe();
  void act();
  void spawn();
  void ended(const End& end);
  void arm_deadline();
  void await_output();
  void take_output();
  void note(const std::string& text);
  void add_to_log(std::string_view bytes);
  wire::ExecRequest request_for(const std::vector<std::string>& command) const;
  void add_ports(wire::ExecRequest& request, contexts::Environment& env,
                 std::vector<base::UniqueFd>& fds) const;
  base::Result<std::shared_ptr<Run>> run(const std::vector<std::string>& command, bool is_main,
                                         Run::OnEnd on_end);

  Host& host_;
  ServiceSpec spec_;
  Identity identity_;
  Machine machine_;
  LogFile log_;
  bool has_log_error_ = false;
  boost::asio::steady_timer deadline_;
  boost::asio::posix::stream_descriptor output_;
  base::UniqueFd output_writer_;
  std::shared_ptr<Run> run_;
  std::unique_ptr<Prober> prober_;
  std::function<void()> on_stopped_;
  std::map<std::uint64_t, Follower> followers_;
  std::uint64_t next_follower_ = 1;
  std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace routerd::services
