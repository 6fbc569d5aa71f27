#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/context.h"

namespace routerd {

class FrameSession;

/// The API's end of all contexts' doors: the session over which it takes their connections.
class DoorTaker {
 public:
  /// From now on `session` gets them, in place of any other.
  void serve(const std::shared_ptr<FrameSession>& session) { session_ = session; }
  /// Whether there is an API that keeps up.
  bool can_take() const;
  /// Hands `connection`, of a program of `context`, to the API. "": of a client of the daemon's who
  /// may do everything.
  base::Result<void> give(const std::string& context, base::UniqueFd connection) const;

 private:
  std::weak_ptr<FrameSession> session_;
};

/// RUNTIME/api.sock as one context has it: the HTTP API for its own programs, without a token. Who
/// connects is a program of this context because no other has a path to it, and is looked at all
/// the same. While no API takes them, connections wait in the backlog.
class ContextDoor {
 public:
  /// Whether the program that connected this socket may come in. Borrowed.
  using MayEnter = std::function<bool(int socket)>;
  /// Told of one who may not, at most once a second: nobody can fill a log by trying.
  using OnRefused = std::function<void(int socket)>;
  /// Listens at `path`, for `uid` (and root) only. Borrows `taker`.
  static base::Result<std::unique_ptr<ContextDoor>> open(boost::asio::io_context& io,
                                                         const DoorTaker& taker,
                                                         std::string context,
                                                         const std::string& path, unsigned uid,
                                                         MayEnter may_enter, OnRefused on_refused);
  ~ContextDoor();
  ContextDoor(const ContextDoor&) = delete;
  ContextDoor& operator=(const ContextDoor&) = delete;

 private:
  ContextDoor(boost::asio::io_context& io, const DoorTaker& taker, base::UniqueFd socket,
              std::string context, std::string path, MayEnter may_enter, OnRefused on_refused);
  void wait();
  void wait_a_moment();
  void accept_all();

  const DoorTaker& taker_;
  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer pause_;
  std::string context_;
  std::string path_;
  MayEnter may_enter_;
  OnRefused on_refused_;
  std::chrono::steady_clock::time_point told_at_;
};

/// The door of `context` at `path`; null where it has none: not wanted, or no place of its own that
/// a socket could be in (tier `none`). What comes in runs as the context's user, so only that user
/// and root may come. `context` and `taker` live longer.
base::Result<std::unique_ptr<ContextDoor>> open_door(boost::asio::io_context& io,
                                                     const DoorTaker& taker,
                                                     const contexts::Context& context,
                                                     const std::string& path,
                                                     ContextDoor::OnRefused on_refused);

}  // namespace routerd
