#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/problem.h"
#include "api/routes.h"

namespace api {

class DaemonClient;

/// Where a connection comes from. A token may be bound to places; then the daemon is asked, once
/// per connection.
class Place {
 public:
  enum class Kind { unknown, outside, context, daemon };
  struct Found {
    Kind kind = Kind::unknown;
    std::string context = {};
  };

  /// The door of a context, which only its programs have.
  static std::shared_ptr<Place> of_door(const std::string& context);
  /// Given by the daemon to a client of its own, who may do everything.
  static std::shared_ptr<Place> of_daemon();
  /// TCP. Borrowed.
  static std::shared_ptr<Place> of_tcp(int socket);

  bool is_tcp() const { return socket_ >= 0; }
  /// What comes from there may do without a token; null by TCP.
  std::shared_ptr<const Token> own_token() const;
  /// The context whose door it is, or empty.
  std::string door() const;
  /// Whether find() needs to ask nobody.
  bool is_found() const { return found_.has_value(); }
  /// Calls `then`, perhaps at once. This object and its socket must stay until then.
  void find(DaemonClient& daemon, const std::function<void(const Found&)>& then);

 private:
  Place(std::optional<Found> found, int socket) : socket_(socket), found_(std::move(found)) {}

  int socket_;
  std::optional<Found> found_;
};

/// Whether the request's token may be used where it comes from; calls `then`, perhaps at once, with
/// the problem if it may not.
void check_place(App& app, const Request& request, const Route& route,
                 std::function<void(std::optional<Problem>)> then);

}  // namespace api
