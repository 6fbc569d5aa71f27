#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>

#include "api/app.h"
#include "api/place.h"
#include "base/unique_fd.h"

namespace api {

/// What one client may do. Sizes in bytes.
struct ServerLimits {
  std::size_t header = 16u << 10;
  std::size_t body = 8u << 20;
  std::size_t parted_body = 64ull << 30;  ///< of one that is never held as a whole
  std::size_t connections = 1024;
  std::size_t connections_per_address = 512;
  std::size_t connections_per_context = 64;  ///< by its own door; not among `connections`
  std::chrono::seconds header_time{15};
  std::chrono::seconds idle_time{75};
  std::chrono::seconds body_time{60};
  std::chrono::seconds write_time{600};  ///< for what a client does not read
};

/// Accepts connections on a socket that is listening already.
class Server {
 public:
  static base::Result<std::unique_ptr<Server>> listen(App& app, base::UniqueFd listener,
                                                      ServerLimits limits);

  /// Serves a program of `context` that has come by the context's own door; "": a client of the
  /// daemon's.
  void take(const std::string& context, base::UniqueFd connection);

  App& app() { return app_; }
  const ServerLimits& limits() const { return limits_; }
  /// A connection of `client` has ended.
  void forget(const std::string& client, const Place& place);

 private:
  Server(App& app, ServerLimits limits);
  void accept();
  void take(boost::asio::ip::tcp::socket socket);
  void serve(boost::asio::ip::tcp::socket socket, const std::string& client,
             std::shared_ptr<Place> place, bool is_welcome);

  App& app_;
  ServerLimits limits_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  /// By client: an address, or a context.
  std::map<std::string, std::size_t> connections_;
  std::size_t tcp_connections_ = 0;
};

/// Serves one connection until it ends.
void serve_connection(Server& server, boost::asio::ip::tcp::socket socket, std::string address,
                      std::shared_ptr<Place> place);

}  // namespace api
