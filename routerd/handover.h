#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/channel.h"

namespace routerd {

/// routerd's end of the channel to a context's init: gives jobs away and takes answers. Datagrams
/// that do not fit the socket for now wait in a queue of at most kMaxQueued.
class Handover {
 public:
  static constexpr std::size_t kMaxQueued = 1024;
  using OnFrame = std::function<void(wire::Frame)>;
  using OnClosed = std::function<void()>;

  /// `channel` is borrowed and duplicated.
  Handover(boost::asio::io_context& io, int channel, OnFrame on_frame, OnClosed on_closed);

  /// Hands a job to the init: the descriptors of the request, none of which is open here any more
  /// when the job is sent, then `connection`. EAGAIN: the queue is full; EPIPE…: the init is gone.
  /// The connection is given back on failure.
  base::Result<void> give(wire::Spawn spawn, base::UniqueFd& connection,
                          std::vector<base::UniqueFd> fds);

  /// From now on no job gets more than `caps` allows.
  void cap(std::vector<wire::Rlimit> caps) { caps_ = std::move(caps); }

  /// Sends a message with at most one descriptor, which is closed then.
  template <class Message>
  base::Result<void> tell(const Message& message, base::UniqueFd fd = {}) {
    wire::Frame frame{wire::type_of<Message>(), wire::encode(message), {}};
    if (fd) frame.fds.push_back(std::move(fd));
    return push(frame);
  }

 private:
  /// Takes `frame` unless it fails.
  base::Result<void> push(wire::Frame& frame);
  base::Result<void> send(const wire::Frame& frame);
  void wait_readable();
  void wait_writable();

  boost::asio::posix::stream_descriptor channel_;
  std::vector<wire::Rlimit> caps_;
  OnFrame on_frame_;
  OnClosed on_closed_;
  std::deque<wire::Frame> queue_;
};

}  // namespace routerd
