#include "routerd/control_places.h"

#include "routerd/context_ports.h"
#include "routerd/whois.h"

namespace routerd {

using nlohmann::json;

namespace {

base::Result<ports::Endpoint> endpoint_in(const json& body, const char* name) {
  const auto field = body.value(name, json::object());
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(field.value("address", ""), error);
  const auto port = field.value("port", 0u);
  if (error || port == 0 || port > 0xffff) {
    return base::failure(name, EINVAL, "expected {address, port}");
  }
  return ports::Endpoint(address, static_cast<std::uint16_t>(port));
}

}  // namespace

base::Result<json> tell_origin(Daemon& daemon, const json& body) {
  const auto client = endpoint_in(body, "client");
  if (!client) return tl::unexpected<base::Error>(client.error());
  const auto server = endpoint_in(body, "server");
  if (!server) return tl::unexpected<base::Error>(server.error());
  const auto origin = whois(daemon, *client, *server);
  constexpr const char* kKinds[] = {"unknown", "outside", "context"};
  return json{{"origin", kKinds[static_cast<int>(origin.kind)]}, {"context", origin.context}};
}

base::Result<json> list_ports(const contexts::Context& context, const json& body) {
  const auto port = body.value("port", 0u);
  if (port > 0xffff) return base::failure("port", EINVAL, "0 to 65535");
  const auto found = ports_of(context, static_cast<std::uint16_t>(port));
  if (!found) return tl::unexpected<base::Error>(found.error());
  json list = json::array();
  for (const auto& each : *found) {
    list.push_back({{"port", each.local.port()},
                    {"address", each.local.address().to_string()},
                    {"pid", each.pid},
                    {"program", each.program}});
  }
  return json{{"ports", std::move(list)}};
}

}  // namespace routerd
