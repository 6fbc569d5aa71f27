#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "routerd/hosted_context.h"
#include "routerd/listener.h"
#include "routerd/services/service.h"

namespace routerd {
class Daemon;
}

namespace routerd::services {

/// The name of the context that services run in.
inline constexpr const char* kControl = "control";

/// All services, their ports and the control context, which is made when the first of them starts
/// and made anew if it is lost.
class Supervisor {
 public:
  struct Settings {
    ports::Reach reach;
    std::string log_folder;
  };

  Supervisor(Daemon& daemon, Settings settings);

  /// Holds the ports of `specs` and checks what can be checked before anything runs. The error
  /// names the service.
  base::Result<void> reserve(const std::vector<ServiceSpec>& specs);
  /// Starts them all; their ports are held.
  base::Result<void> start(const std::vector<ServiceSpec>& specs);
  /// Makes what runs equal to `specs`: what is not in them stops and gives its ports up, what
  /// changed starts anew, what did not is not touched. What could not be done is told in a line
  /// each and leaves what runs as it is.
  std::vector<std::string> reload(const std::vector<ServiceSpec>& specs);
  /// Calls `on_stopped` when no service runs any more.
  void stop_all(const std::function<void()>& on_stopped);

  const std::map<std::string, std::unique_ptr<Service>>& services() const { return services_; }
  Service* find(const std::string& name);
  ports::PortTable& ports() { return ports_; }

 private:
  base::Result<void> prepare();
  base::Result<void> add(const ServiceSpec& spec);
  void remove(const std::string& name, std::function<void()> then);
  base::Result<void> check(const ServiceSpec& spec) const;
  base::Result<HostedContext*> control();
  base::Result<void> open_server(const Service& service);
  base::Result<void> open_door(const Service& service);
  base::Result<void> provide(const std::string& name) const;
  base::Result<void> launch(wire::ExecRequest request, base::UniqueFd connection,
                            std::vector<base::UniqueFd> fds);

  Daemon& daemon_;
  Settings settings_;
  ports::PortTable ports_;
  Host host_;
  std::map<std::string, std::unique_ptr<Service>> services_;
  /// What services ask the daemon at: for their ports or, the API, for everything. By service.
  std::map<std::string, std::unique_ptr<Listener>> servers_;
  /// Stopped and out of the configuration; until nothing of them is on the stack any more.
  std::vector<std::unique_ptr<Service>> removed_;
};

}  // namespace routerd::services
