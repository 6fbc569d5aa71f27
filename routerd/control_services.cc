#include "routerd/control_services.h"

namespace routerd {

using nlohmann::json;
using services::Service;

namespace {

constexpr std::size_t kMostLog = 1u << 20;
constexpr std::size_t kUsualLog = 64u << 10;

json describe(services::Supervisor& supervisor, const ports::PortSpec& spec) {
  const auto* held = supervisor.ports().find(spec.key);
  return {{"port", spec.key.number},
          {"protocol", ports::name_of(spec.key.protocol)},
          {"expose", ports::name_of(spec.expose)},
          {"name", spec.name},
          {"held", held != nullptr},
          {"queued", held != nullptr ? held->queued() : 0},
          {"resets", supervisor.ports().resets(spec.key)}};
}

json describe(services::Supervisor& supervisor, const Service& service) {
  using namespace std::chrono;
  const auto& machine = service.machine();
  json ports = json::array();
  for (const auto& port : service.spec().ports) ports.push_back(describe(supervisor, port));
  const auto age = steady_clock::now() - machine.since();
  return {{"name", service.spec().name},
          {"state", services::name_of(machine.state())},
          {"sinceMs", duration_cast<milliseconds>(age).count()},
          {"pid", service.pid()},
          {"program", service.spec().command.front()},
          {"user", service.identity().user},
          {"uid", service.identity().credentials.uid},
          {"restarts", machine.restarts()},
          {"failures", machine.failures()},
          {"crashLooping", machine.is_crash_looping()},
          {"lastEnd", machine.last_end()},
          {"ports", std::move(ports)},
          {"log",
           {{"path", service.log().path()},
            {"droppedBytes", service.log().dropped()},
            {"error", service.log().last_error()}}}};
}

base::Result<Service*> find(Daemon& daemon, const json& body) {
  const std::string name = body.value("service", "");
  Service* found = daemon.services() != nullptr ? daemon.services()->find(name) : nullptr;
  if (found != nullptr) return found;
  return base::failure("there is no service '" + name.substr(0, 64) + "'", ENOENT,
                       "'airlock services' lists them");
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

json list_services(Daemon& daemon) {
  json list = json::array();
  if (auto* supervisor = daemon.services()) {
    for (const auto& [name, service] : supervisor->services()) {
      list.push_back(describe(*supervisor, *service));
    }
  }
  return {{"services", std::move(list)}};
}

base::Result<json> restart_service(Daemon& daemon, const json& body) {
  auto service = find(daemon, body);
  if (!service) return tl::unexpected<base::Error>(service.error());
  (*service)->restart();
  return json::object();
}

base::Result<json> service_log(Daemon& daemon, FrameSession& session, const json& body) {
  auto service = find(daemon, body);
  if (!service) return tl::unexpected<base::Error>(service.error());
  const auto bytes = std::min(body.value("bytes", kUsualLog), kMostLog);
  json reply = {{"text", (*service)->log().tail(bytes)}};
  if (!body.value("follow", false)) return reply;
  const auto number = (*service)->follow([weak = session.weak_from_this()](std::string_view text) {
    if (const auto alive = weak.lock()) {
      alive->send(wire::MessageType::event, wire::encode(wire::Event{text_of({{"text", text}})}));
    }
  });
  session.on_close([&daemon, name = (*service)->spec().name, number] {
    auto* supervisor = daemon.services();
    Service* followed = supervisor != nullptr ? supervisor->find(name) : nullptr;
    if (followed != nullptr) followed->unfollow(number);
  });
  return reply;
}

base::Result<json> reload(Daemon& daemon) {
  if (!daemon.reload()) {
    return base::failure("reload", ENOENT, "the daemon was started without a configuration file");
  }
  return json{{"problems", daemon.reload()()}};
}

}  // namespace routerd
