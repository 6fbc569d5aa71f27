#include "api/server.h"

#include <sys/socket.h>

#include <boost/asio/write.hpp>

namespace api {

using boost::asio::ip::tcp;
using boost::system::error_code;

namespace {

/// For who has too many connections; nothing is read from it first.
constexpr std::string_view kTooMany =
    "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\n"
    "Retry-After: 1\r\nConnection: close\r\nContent-Length: 57\r\n\r\n"
    "{\"code\":\"too-many-requests\",\"status\":429,\"retryable\":true}\n";

/// IPv4 as such, also where it comes to a dual-stack socket.
std::string text_of(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).to_string();
}

}  // namespace

base::Result<std::unique_ptr<Server>> Server::listen(App& app, base::UniqueFd listener,
                                                     ServerLimits limits) {
  int family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(listener.borrow(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) {
    return base::os_error("use the listening socket");
  }
  std::unique_ptr<Server> server(new Server(app, limits));
  error_code error;
  server->acceptor_.assign(family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.release(), error);
  if (error) return base::failure("use the listening socket", error.value());
  server->accept();
  return server;
}

Server::Server(App& app, ServerLimits limits)
    : app_(app), limits_(limits), acceptor_(app.io), pause_(app.io) {}

void Server::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (!error) {
      take(std::move(socket));
      return accept();
    }
    // Descriptors have run out, say. Connections wait in the backlog meanwhile.
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([this](error_code stopped) {
      if (!stopped) accept();
    });
  });
}

void Server::take(tcp::socket socket) {
  error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return;
  const std::string address = text_of(peer.address());
  const bool is_welcome = tcp_connections_ < limits_.connections &&
                          connections_[address] < limits_.connections_per_address;
  socket.set_option(tcp::no_delay(true), error);
  auto place = Place::of_tcp(socket.native_handle());
  serve(std::move(socket), address, std::move(place), is_welcome);
}

// Nothing asks this socket for an address, so Asio need not know that it is none of TCP.
void Server::take(const std::string& context, base::UniqueFd connection) {
  tcp::socket socket(app_.io);
  error_code error;
  socket.assign(tcp::v4(), connection.borrow(), error);
  if (error) return;
  (void)connection.release();
  const std::string client = context.empty() ? "control.sock" : "context " + context;
  const bool is_welcome = connections_[client] < limits_.connections_per_context;
  serve(std::move(socket), client, context.empty() ? Place::of_daemon() : Place::of_door(context),
        is_welcome);
}

void Server::serve(tcp::socket socket, const std::string& client, std::shared_ptr<Place> place,
                   bool is_welcome) {
  auto& count = connections_[client];
  if (!is_welcome) {
    if (count == 0) connections_.erase(client);
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(boost::asio::buffer(kTooMany), ignored);
    return;
  }
  ++count;
  ++app_.counters.connections;
  if (place->is_tcp()) ++tcp_connections_;
  serve_connection(*this, std::move(socket), client, std::move(place));
}

void Server::forget(const std::string& client, const Place& place) {
  --app_.counters.connections;
  if (place.is_tcp()) --tcp_connections_;
  const auto found = connections_.find(client);
  if (found != connections_.end() && --found->second == 0) connections_.erase(found);
}

}  // namespace api
