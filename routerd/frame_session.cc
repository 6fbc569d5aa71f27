#include "routerd/frame_session.h"

#include <sys/socket.h>

#include "wire/limits.h"

namespace routerd {

namespace asio = boost::asio;

FrameSession::FrameSession(asio::io_context& io, base::UniqueFd socket, OnFrame on_frame)
    : io_(io), socket_(std::move(socket)), on_frame_(std::move(on_frame)) {}

FrameSession::~FrameSession() { unwatch(); }

// A stub sends right after connect(2), so its request is usually there already: read first, and
// wait only for what is missing.
void FrameSession::start() { read(); }

void FrameSession::read() {
  while (socket_) {
    auto frame = receiver_.receive(socket());
    if (!frame) return close();
    if (!*frame) return wait_readable();
    has_frame_ = true;
    if (!on_frame_(*this, std::move(**frame))) return;
  }
}

asio::posix::stream_descriptor& FrameSession::watched() {
  if (!watched_) watched_.emplace(io_, socket_.borrow());
  return *watched_;
}

// Pending waits end with operation_aborted; the socket stays open.
void FrameSession::unwatch() {
  if (watched_) watched_->release();
  watched_.reset();
}

void FrameSession::wait_readable() {
  watched().async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](boost::system::error_code error) {
                         if (!error) self->read();
                       });
}

base::UniqueFd FrameSession::release() {
  unwatch();
  base::UniqueFd released = std::move(socket_);
  // Whoever reads on, a spawner first of all, has no use for credentials.
  const int off = 0;
  ::setsockopt(released.borrow(), SOL_SOCKET, SO_PASSCRED, &off, sizeof off);
  finish();
  return released;
}

void FrameSession::close() {
  if (!socket_) return;
  unwatch();
  socket_.reset();
  finish();
}

void FrameSession::finish() {
  for (const auto& action : std::exchange(on_close_, {})) action();
}

void FrameSession::send(wire::MessageType type, const std::string& payload) {
  if (!socket_) return;
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
    watched().async_wait(asio::posix::stream_descriptor::wait_write,
                         [self = shared_from_this()](boost::system::error_code error) {
                           self->is_writing_ = false;
                           if (!error) self->flush();
                         });
    return;
  }
}

}  // namespace routerd
