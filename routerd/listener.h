#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>

#include "base/result.h"
#include "routerd/frame_session.h"

namespace routerd {

/// A non-blocking UNIX STREAM socket that listens at `path` (which is removed first if it is a
/// stale socket) with `mode`.
base::Result<base::UniqueFd> listen_at(const std::string& path, unsigned mode);

/// Accepts connections on a UNIX STREAM socket. A connection that has not sent its request within
/// wire::kRequestDeadlineMs is closed; beyond wire::kMaxPendingConnections the oldest such one is.
class Listener {
 public:
  using OnAccept = std::function<std::shared_ptr<FrameSession>(base::UniqueFd)>;

  /// As listen_at().
  static base::Result<std::unique_ptr<Listener>> open(boost::asio::io_context& io,
                                                      const std::string& path, unsigned mode,
                                                      OnAccept on_accept);
  ~Listener();

 private:
  Listener(boost::asio::io_context& io, base::UniqueFd socket, std::string path,
           OnAccept on_accept);
  void wait();
  void accept_all();
  void drop_late();
  void arm_deadline();

  boost::asio::posix::stream_descriptor socket_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer backoff_;
  std::string path_;
  OnAccept on_accept_;
  std::deque<std::weak_ptr<FrameSession>> waiting_;
  /// Given up for a moment when descriptors run out, so that a connection can be refused.
  base::UniqueFd reserve_;
  bool is_armed_ = false;
};

}  // namespace routerd
