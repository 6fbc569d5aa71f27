#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/exec_order.h"
#include "api/frame_connection.h"
#include "base/result.h"

namespace api {

/// The daemon, as the API asks it: by verbs of the control socket (docs/PROTOCOL.md, 10).
class DaemonClient {
 public:
  /// Called with the daemon's answer, or with its error, whose `code` is the errno it told.
  using Answer = std::function<void(base::Result<nlohmann::json>)>;

  /// `on_lost` is called when the daemon closes a connection: nothing works any more.
  static base::Result<std::unique_ptr<DaemonClient>> connect(boost::asio::io_context& io,
                                                             std::string socket,
                                                             std::function<void()> on_lost);

  /// Asks {verb, …fields}. Questions are answered in their order.
  void ask(const std::string& verb, nlohmann::json fields, Answer answer);

  /// The same on a connection of its own: for what may take a while, as others' answers do not wait
  /// for it.
  void ask_apart(const std::string& verb, nlohmann::json fields, Answer answer);

  /// For messages of the job store, which are not answered here.
  FrameConnection& jobs() { return *jobs_; }
  /// Tells on `connection`, before it asks for a program, by which request that is. No fields:
  /// tells nothing. `exec` may be empty.
  static void announce(FrameConnection& connection, const AskedBy& fields, const std::string& exec);

  /// A connection of its own for a verb that goes on: `on_event` gets the answer first, then each
  /// event. Destroying it ends it.
  using OnEvent = std::function<void(const nlohmann::json&)>;
  base::Result<std::unique_ptr<FrameConnection>> follow(const std::string& verb,
                                                        nlohmann::json fields, OnEvent on_event,
                                                        std::function<void()> on_closed);
  /// The same for connections of contexts' own programs, each with the context's name.
  using OnConnection = std::function<void(std::string context, base::UniqueFd connection)>;
  base::Result<std::unique_ptr<FrameConnection>> take_connections(OnConnection on_connection,
                                                                  std::function<void()> on_closed);
  /// A new connection; blocks no longer than the daemon takes to accept. Borrows nothing.
  base::Result<base::UniqueFd> open() const;

 private:
  struct Question {
    std::string text;
    Answer answer;
  };
  DaemonClient(boost::asio::io_context& io, std::string socket)
      : io_(io), socket_(std::move(socket)) {}
  void ask_next();
  void take(const wire::Frame& frame);

  boost::asio::io_context& io_;
  std::string socket_;
  std::unique_ptr<FrameConnection> verbs_;
  std::unique_ptr<FrameConnection> jobs_;
  std::deque<Question> questions_;
  bool is_asking_ = false;
};

}  // namespace api
