#include "api/frame_connection.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cstring>

#include "base/file.h"
#include "wire/limits.h"

namespace api {
namespace {

/// sendmsg(2) of what is left of a frame; its descriptors travel with its first byte.
ssize_t send_some(int socket, const char* bytes, std::size_t size, const std::vector<int>& fds) {
  iovec part{const_cast<char*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control(fds.empty() ? 0 : CMSG_SPACE(fds.size() * sizeof(int)));
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

FrameConnection::FrameConnection(boost::asio::io_context& io, base::UniqueFd socket,
                                 OnFrame on_frame, OnClosed on_closed)
    : socket_(io), on_frame_(std::move(on_frame)), on_closed_(std::move(on_closed)) {
  (void)base::set_nonblocking(socket.borrow(), true);
  socket_.assign(socket.release());
  boost::asio::post(socket_.get_executor(), [this] { read(); });
}

void FrameConnection::enqueue(wire::MessageType type, const std::string& payload,
                              std::vector<base::UniqueFd> fds) {
  Outgoing frame{wire::encode_header({.length = static_cast<std::uint32_t>(payload.size()),
                                      .type = type,
                                      .version = wire::kVersion,
                                      .fd_count = static_cast<std::uint32_t>(fds.size())}),
                 std::move(fds)};
  frame.bytes += payload;
  queued_ += frame.bytes.size();
  outgoing_.push_back(std::move(frame));
  if (!is_writing_) flush();
}

void FrameConnection::flush() {
  while (!outgoing_.empty()) {
    Outgoing& frame = outgoing_.front();
    std::vector<int> numbers;
    if (frame.sent == 0) {
      for (const auto& fd : frame.fds) numbers.push_back(fd.borrow());
    }
    const ssize_t sent = send_some(socket_.native_handle(), frame.bytes.data() + frame.sent,
                                   frame.bytes.size() - frame.sent, numbers);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return;  // the reader will notice
    if (sent < 0) {
      is_writing_ = true;
      return socket_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                                [this](boost::system::error_code error) {
                                  if (error) return;  // cancelled: this object may be gone
                                  is_writing_ = false;
                                  flush();
                                  if (outgoing_.empty() && on_drained_) on_drained_();
                                });
    }
    frame.sent += static_cast<std::size_t>(sent);
    queued_ -= static_cast<std::size_t>(sent);
    if (frame.sent == frame.bytes.size()) outgoing_.pop_front();
  }
}

void FrameConnection::go_on() {
  if (!std::exchange(is_held_, false) || is_reading_) return;
  read();
}

void FrameConnection::read() {
  while (!is_held_) {
    auto frame = receiver_.receive(socket_.native_handle());
    if (!frame) return lose();
    if (!*frame) break;
    on_frame_(std::move(**frame));
  }
  if (is_held_) return;
  is_reading_ = true;
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](boost::system::error_code error) {
                       if (error) return;  // cancelled: this object may be gone
                       is_reading_ = false;
                       read();
                     });
}

void FrameConnection::lose() {
  if (const auto closed = std::exchange(on_closed_, nullptr)) closed();
}

}  // namespace api
