#include "routerd/frame_session.h"

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>

#include "wire/limits.h"

namespace routerd {

namespace asio = boost::asio;

FrameSession::FrameSession(asio::io_context& io, base::UniqueFd socket, OnFrame on_frame)
    : descriptor_(io, socket.release()), on_frame_(std::move(on_frame)) {}

// A stub sends right after connect(2), so its request is usually there already: read first, and
// wait only for what is missing.
void FrameSession::start() { read(); }

void FrameSession::read() {
  while (descriptor_.is_open()) {
    auto frame = receiver_.receive(socket());
    if (!frame) return close();
    if (!*frame) return wait_readable();
    has_frame_ = true;
    if (!on_frame_(*this, std::move(**frame))) return;
  }
}

void FrameSession::wait_readable() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](boost::system::error_code error) {
                           if (!error) self->read();
                         });
}

base::UniqueFd FrameSession::release() {
  base::UniqueFd released(descriptor_.release());
  finish();
  return released;
}

void FrameSession::close() {
  if (!descriptor_.is_open()) return;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  finish();
}

void FrameSession::finish() {
  for (const auto& action : std::exchange(on_close_, {})) action();
}

void FrameSession::send(wire::MessageType type, const std::string& payload) {
  if (!descriptor_.is_open()) return;
  if (outgoing_.size() + payload.size() > kMaxQueued) return close();
  outgoing_ += wire::encode_header({.length = static_cast<std::uint32_t>(payload.size()),
                                    .type = type,
                                    .version = wire::kVersion,
                                    .fd_count = 0});
  outgoing_ += payload;
  if (!is_writing_) flush();
}

void FrameSession::flush() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(socket(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      outgoing_.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return close();
    is_writing_ = true;
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_write,
                           [self = shared_from_this()](boost::system::error_code error) {
                             self->is_writing_ = false;
                             if (!error) self->flush();
                           });
    return;
  }
}

}  // namespace routerd
