#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "wire/channel.h"

namespace routerd {

/// One accepted connection that sends frames. Lives as long as it waits for something: through the
/// shared_ptr in its pending operation.
class FrameSession : public std::enable_shared_from_this<FrameSession> {
 public:
  /// Called per frame; true = wait for the next one. The session may be release()d inside.
  using OnFrame = std::function<bool(FrameSession&, wire::Frame)>;

  FrameSession(boost::asio::io_context& io, base::UniqueFd socket, OnFrame on_frame);
  ~FrameSession();
  FrameSession(const FrameSession&) = delete;
  FrameSession& operator=(const FrameSession&) = delete;

  /// Starts reading.
  void start();
  /// The socket, still owned by the session. Borrowed.
  int socket() const { return socket_.borrow(); }
  /// Takes the socket out; the session ends.
  base::UniqueFd release();
  /// Sends a frame after those queued before it. A peer that lets kMaxQueued bytes pile up is
  /// disconnected.
  void send(wire::MessageType type, const std::string& payload);
  void close();
  /// `action` is called once, when the connection has ended or was released.
  void on_close(std::function<void()> action) { on_close_.push_back(std::move(action)); }
  boost::asio::any_io_executor executor() { return io_.get_executor(); }
  std::chrono::steady_clock::time_point accepted() const { return accepted_; }
  /// True while no complete frame has come.
  bool is_waiting_for_first() const { return !has_frame_; }

 private:
  static constexpr std::size_t kMaxQueued = 8u << 20;
  void read();
  void finish();
  void wait_readable();
  void flush();
  boost::asio::posix::stream_descriptor& watched();
  void unwatch();

  boost::asio::io_context& io_;
  base::UniqueFd socket_;
  /// `socket_`, once there was something to wait for: a stub's connection comes with its request
  /// and never needs a place in the poll set.
  std::optional<boost::asio::posix::stream_descriptor> watched_;
  OnFrame on_frame_;
  std::vector<std::function<void()>> on_close_;
  wire::Receiver receiver_;
  std::string outgoing_;
  std::chrono::steady_clock::time_point accepted_ = std::chrono::steady_clock::now();
  bool has_frame_ = false;
  bool is_writing_ = false;
};

}  // namespace routerd
