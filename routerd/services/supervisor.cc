#include "routerd/services/supervisor.h"

#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <set>

#include "routerd/api_door.h"
#include "routerd/daemon.h"
#include "routerd/peer.h"
#include "routerd/services/port_server.h"

extern char** environ;

namespace routerd::services {

using base::Result;

namespace {

constexpr const char* kBindLibrary = "/libairlock-bind.so";

contexts::Environment own_environment() {
  contexts::Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  return env;
}

/// The folder a service starts in, made for it where it is missing.
Result<void> make_working_folder(const ServiceSpec& spec, const Identity& identity) {
  if (::mkdir(spec.cwd.c_str(), 0755) != 0) {
    if (errno == EEXIST) return {};
    return base::os_error("service '" + spec.name + "': create its cwd " + spec.cwd);
  }
  if (::chmod(spec.cwd.c_str(), 0755) != 0) return base::os_error("chmod " + spec.cwd);
  const auto& owner = identity.credentials;
  if (::geteuid() == 0 && ::chown(spec.cwd.c_str(), owner.uid, owner.gid) != 0) {
    return base::os_error("chown " + spec.cwd);
  }
  return {};
}

bool probes_by_connection(const ServiceSpec& spec) {
  return spec.ready.kind == Probe::Kind::accept || spec.ready.kind == Probe::Kind::http;
}

/// Once nothing of `specs` can have the same uid by accident.
Result<void> check_own_uids(const std::vector<ServiceSpec>& specs) {
  if (::geteuid() != 0) return {};
  std::map<unsigned, std::string> owners;
  for (const auto& spec : specs) {
    if (!spec.user.empty()) continue;
    const auto [owner, is_new] = owners.emplace(own_uid(spec.name), spec.name);
    if (is_new) continue;
    return base::failure("services '" + owner->second + "' and '" + spec.name + "'", EEXIST,
                         "their names give the same uid; set 'user' for one of them");
  }
  return {};
}

}  // namespace

Supervisor::Supervisor(Daemon& daemon, Settings settings)
    : daemon_(daemon),
      settings_(std::move(settings)),
      ports_(daemon.io(), settings_.reach),
      host_{daemon.io(),
            ports_,
            [this](wire::ExecRequest request, base::UniqueFd connection,
                   std::vector<base::UniqueFd> fds) {
              return launch(std::move(request), std::move(connection), std::move(fds));
            },
            settings_.log_folder,
            [this] {
              const auto& runtime = daemon_.runtime();
              return contexts::is_isolated(daemon_.tier()) ? runtime.root()
                                                           : runtime.view(kControl);
            },
            own_environment()} {}

Result<void> Supervisor::check(const ServiceSpec& spec) const {
  auto identity = identify(spec);
  if (!identity) return tl::unexpected<base::Error>(identity.error());
  return probes_by_connection(spec) ? check_can_probe(settings_.reach) : Result<void>{};
}

Result<void> Supervisor::reserve(const std::vector<ServiceSpec>& specs) {
  if (auto checked = check_own_uids(specs); !checked) return checked;
  for (const auto& spec : specs) {
    if (auto checked = check(spec); !checked) return checked;
    for (const auto& port : spec.ports) {
      if (auto held = ports_.reserve(port); !held) {
        held.error().operation = "service '" + spec.name + "': " + held.error().operation;
        return held;
      }
    }
  }
  return {};
}

Result<void> Supervisor::prepare() {
  if (::mkdir(settings_.log_folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::os_error("create the folder of the services' logs " + settings_.log_folder);
  }
  if (auto made = control(); !made) return tl::unexpected<base::Error>(made.error());
  return {};
}

Result<void> Supervisor::start(const std::vector<ServiceSpec>& specs) {
  if (specs.empty()) return {};
  if (auto prepared = prepare(); !prepared) return prepared;
  for (const auto& spec : specs) {
    if (auto added = add(spec); !added) return added;
  }
  return {};
}

Result<void> Supervisor::add(const ServiceSpec& spec) {
  auto identity = identify(spec);
  if (!identity) return tl::unexpected<base::Error>(identity.error());
  if (auto made = make_working_folder(spec, *identity); !made) return made;
  auto service = Service::create(host_, spec, std::move(*identity));
  if (!service) return tl::unexpected<base::Error>(service.error());
  if (auto open = open_server(**service); !open) return open;
  Service& added = *services_.emplace(spec.name, std::move(*service)).first->second;
  added.start();
  return {};
}

void Supervisor::remove(const std::string& name, std::function<void()> then) {
  Service* service = find(name);
  if (service == nullptr) return then();
  service->stop([this, name, then = std::move(then)] {
    auto node = services_.extract(name);
    if (!node.empty()) removed_.push_back(std::move(node.mapped()));
    servers_.erase(name);
    boost::asio::post(daemon_.io(), [this, then] {
      removed_.clear();
      then();
    });
  });
}

std::vector<std::string> Supervisor::reload(const std::vector<ServiceSpec>& specs) {
  std::vector<std::string> problems;
  std::map<std::string, const ServiceSpec*> wanted;
  std::set<ports::PortKey> wanted_ports;
  for (const auto& spec : specs) {
    wanted[spec.name] = &spec;
    for (const auto& port : spec.ports) wanted_ports.insert(port.key);
  }
  const auto release_unwanted = [this, wanted_ports](const std::vector<ports::PortSpec>& ports) {
    for (const auto& port : ports) {
      if (!wanted_ports.contains(port.key)) ports_.release(port.key);
    }
  };
  std::vector<std::string> names;
  for (const auto& [name, service] : services_) names.push_back(name);
  for (const auto& name : names) {
    const auto found = wanted.find(name);
    if (found != wanted.end()) continue;
    spdlog::info("service={} op=remove", name);
    remove(name, [release_unwanted, ports = find(name)->spec().ports] { release_unwanted(ports); });
  }
  if (!specs.empty()) {
    if (auto prepared = prepare(); !prepared) return {prepared.error().message()};
  }
  for (const auto& spec : specs) {
    const Service* running = find(spec.name);
    if (running != nullptr && running->spec() == spec) continue;
    if (auto held = reserve({spec}); !held) {
      problems.push_back(held.error().message());
      continue;
    }
    spdlog::info("service={} op={}", spec.name, running != nullptr ? "change" : "add");
    std::vector<ports::PortSpec> old_ports;
    if (running != nullptr) old_ports = running->spec().ports;
    remove(spec.name, [this, spec, release_unwanted, old_ports] {
      release_unwanted(old_ports);
      if (auto added = add(spec); !added) spdlog::error("{}", added.error().message());
    });
  }
  return problems;
}

void Supervisor::stop_all(const std::function<void()>& on_stopped) {
  auto left = std::make_shared<std::size_t>(services_.size());
  if (*left == 0) return on_stopped();
  for (const auto& [name, service] : services_) {
    service->stop([left, on_stopped] {
      if (--*left == 0) on_stopped();
    });
  }
}

Service* Supervisor::find(const std::string& name) {
  const auto found = services_.find(name);
  return found == services_.end() ? nullptr : found->second.get();
}

Result<HostedContext*> Supervisor::control() {
  if (auto* standing = daemon_.find(kControl)) return standing;
  contexts::ContextSpec spec;
  spec.name = kControl;
  spec.is_control = true;
  // The platform's HOME, with its credentials, is not the services' business.
  const char* home = ::getenv("HOME");
  struct stat info {};
  if (home != nullptr && home[0] == '/' && home[1] != '\0' && ::stat(home, &info) == 0) {
    spec.home = home;
  }
  auto made = daemon_.create(std::move(spec));
  if (!made) return made;
  if (auto there = provide(kBindLibrary); !there) return tl::unexpected<base::Error>(there.error());
  servers_.clear();
  for (const auto& [name, service] : services_) {
    if (auto open = open_server(*service); !open) {
      return tl::unexpected<base::Error>(open.error());
    }
  }
  return made;
}

/// Puts a file of ours where programs of the control context find it.
Result<void> Supervisor::provide(const std::string& name) const {
  const std::string copy = daemon_.runtime().view(kControl) + name;
  std::error_code error;
  std::filesystem::copy_file(daemon_.options().programs + name, copy,
                             std::filesystem::copy_options::overwrite_existing, error);
  if (error) return base::failure("copy " + name.substr(1), error.value());
  if (::chmod(copy.c_str(), 0755) != 0) return base::os_error("chmod " + copy);
  return {};
}

Result<void> Supervisor::open_door(const Service& service) {
  const std::string& name = service.spec().name;
  if (auto there = provide("/" + name); !there) return there;
  auto door = open_api_door(daemon_, daemon_.runtime().view(kControl) + "/control.sock",
                            service.identity().credentials.uid);
  if (!door) return tl::unexpected<base::Error>(door.error());
  servers_[name] = std::move(*door);
  return {};
}

Result<void> Supervisor::open_server(const Service& service) {
  const auto& spec = service.spec();
  if (spec.is_api) return open_door(service);
  if (spec.ports.empty() || spec.handing != Handing::bind) return {};
  const auto is_ours = [this](int socket) {
    const auto* control = daemon_.find(kControl);
    const auto peer = peer_of(socket);
    return control != nullptr && peer && control->context->contains(socket, peer->pid);
  };
  auto server =
      serve_ports(daemon_.io(), daemon_.runtime().view(kControl) + "/ports-" + spec.name + ".sock",
                  service.identity().credentials.uid, ports_, spec.ports, is_ours);
  if (!server) return tl::unexpected<base::Error>(server.error());
  servers_[spec.name] = std::move(*server);
  return {};
}

Result<void> Supervisor::launch(wire::ExecRequest request, base::UniqueFd connection,
                                std::vector<base::UniqueFd> fds) {
  auto target = control();
  if (!target) return tl::unexpected<base::Error>(target.error());
  return daemon_.router().start(**target, std::move(request), std::move(connection),
                                std::move(fds));
}

}  // namespace routerd::services
