#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/channel.h"

namespace api {

/// A connection to the daemon, or to a program, on which frames go out in order, with their
/// descriptors, however slowly the other side takes them.
class FrameConnection {
 public:
  using OnFrame = std::function<void(wire::Frame)>;
  using OnClosed = std::function<void()>;

  /// `on_closed` is called once; not from inside send().
  FrameConnection(boost::asio::io_context& io, base::UniqueFd socket, OnFrame on_frame,
                  OnClosed on_closed);

  /// At most wire::kMaxFdsPerMessage descriptors.
  template <class Message>
  void send(const Message& message, std::vector<base::UniqueFd>&& fds = {}) {
    enqueue(wire::type_of<Message>(), wire::encode(message), std::move(fds));
  }
  /// Bytes that wait for the other side.
  std::size_t queued() const { return queued_; }
  /// `action` is called whenever something has waited and all of it is gone.
  void on_drained(std::function<void()> action) { on_drained_ = std::move(action); }
  /// No frames come until go_on(), which is not called from inside a callback.
  void hold() { is_held_ = true; }
  void go_on();

 private:
  struct Outgoing {
    std::string bytes;
    std::vector<base::UniqueFd> fds;
    std::size_t sent = 0;
  };
  void enqueue(wire::MessageType type, const std::string& payload, std::vector<base::UniqueFd> fds);
  void flush();
  void read();
  void lose();

  boost::asio::posix::stream_descriptor socket_;
  OnFrame on_frame_;
  OnClosed on_closed_;
  std::function<void()> on_drained_;
  wire::Receiver receiver_;
  std::deque<Outgoing> outgoing_;
  std::size_t queued_ = 0;
  bool is_writing_ = false;
  bool is_held_ = false;
  bool is_reading_ = false;
};

}  // namespace api
