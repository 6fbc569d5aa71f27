#include "api/place.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include "api/app.h"

namespace api {

using boost::asio::ip::tcp;
using nlohmann::json;

namespace {

using NameOf = int (*)(int, sockaddr*, socklen_t*);

/// {address, port}, or null: the connection has ended.
json endpoint_of(int socket, NameOf name_of) {
  tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (name_of(socket, endpoint.data(), &size) != 0) return nullptr;
  endpoint.resize(size);
  return {{"address", endpoint.address().to_string()}, {"port", endpoint.port()}};
}

/// Not reset: as long as it is open here, its four numbers are nobody else's, so what was found by
/// them is its other end. (Bytes of one that was reset can still be read.)
bool is_open(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT;
}

Place::Found read_origin(const json& answer) {
  const auto origin = answer.value("origin", "");
  if (origin == "outside") return {Place::Kind::outside};
  if (origin == "context") return {Place::Kind::context, answer.value("context", "")};
  return {};
}

bool is_allowed(const Token& token, const Place::Found& found) {
  switch (found.kind) {
    case Place::Kind::context:
      return token.may_come_from(found.context);
    case Place::Kind::outside:
      return token.may_come_from_outside();
    case Place::Kind::daemon:
      return true;
    case Place::Kind::unknown:
      return token.is_local;
  }
  return false;
}

}  // namespace

std::shared_ptr<Place> Place::of_door(const std::string& context) {
  return std::shared_ptr<Place>(new Place(Found{Kind::context, context}, -1));
}

std::shared_ptr<Place> Place::of_daemon() {
  return std::shared_ptr<Place>(new Place(Found{Kind::daemon}, -1));
}

std::shared_ptr<Place> Place::of_tcp(int socket) {
  return std::shared_ptr<Place>(new Place(std::nullopt, socket));
}

std::string Place::door() const {
  return !is_tcp() && found_->kind == Kind::context ? found_->context : std::string();
}

std::shared_ptr<const Token> Place::own_token() const {
  if (is_tcp()) return nullptr;
  return found_->kind == Kind::daemon ? token_of_daemon() : token_of_context(found_->context);
}

void Place::find(DaemonClient& daemon, const std::function<void(const Found&)>& then) {
  if (found_) return then(*found_);
  daemon.ask("whois",
             {{"client", endpoint_of(socket_, ::getpeername)},
              {"server", endpoint_of(socket_, ::getsockname)}},
             [this, then](const base::Result<json>& answer) {
               const bool is_answered = answer && is_open(socket_);
               found_ = is_answered ? read_origin(*answer) : Found{};
               then(*found_);
             });
}

void check_place(App& app, const Request& request, const Route& route,
                 std::function<void(std::optional<Problem>)> then) {
  const auto& token = request.token;
  if (!token || !token->is_bound()) return then(std::nullopt);
  // The daemon looks through all processes: not as often as somebody likes to connect.
  if (!request.place->is_found() &&
      !app.places.take(token->name, std::chrono::steady_clock::now())) {
    return then(problem("too-many-requests"));
  }
  request.place->find(*app.daemon,
                      [&app, token, client = request.client, operation = route.operation,
                       place = request.place, then = std::move(then)](const Place::Found& found) {
                        if (is_allowed(*token, found)) return then(std::nullopt);
                        app.refusals->add({"forbidden-place", client, token->name, operation});
                        then(problem("forbidden-place"));
                      });
}

}  // namespace api
