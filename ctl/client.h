#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/channel.h"

namespace ctl {

/// AIRLOCK_RUNTIME_DIR, or /run/airlock.
std::string default_runtime_dir();

/// A connection to a daemon's control socket.
class Client {
 public:
  /// ENOENT, ECONNREFUSED: no daemon serves `runtime_dir`; EACCES: not for this user.
  static base::Result<Client> connect(const std::string& runtime_dir);
  explicit Client(base::UniqueFd socket) : socket_(std::move(socket)) {}

  /// Sends {"verb": verb, …fields} and waits for the reply. An error the daemon replies with is
  /// returned as such.
  base::Result<nlohmann::json> ask(const std::string& verb,
                                   nlohmann::json fields = nlohmann::json::object());
  /// Waits for the next event of `routes` with follow.
  base::Result<nlohmann::json> next_event();

  /// A connection to the HTTP API. EAGAIN: the API is just being started.
  base::Result<base::UniqueFd> api_connection();

  /// The socket, for an exec request. Borrowed.
  int socket() const { return socket_.borrow(); }

 private:
  base::Result<wire::Frame> next_frame();
  base::Result<wire::Frame> exchange(const std::string& verb, nlohmann::json fields);

  base::UniqueFd socket_;
  wire::Receiver receiver_;
};

}  // namespace ctl
