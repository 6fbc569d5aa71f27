#include "routerd/handover.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "contexts/limits.h"
#include "wire/limits.h"

namespace routerd {

Handover::Handover(boost::asio::io_context& io, int channel, OnFrame on_frame, OnClosed on_closed)
    : channel_(io, ::fcntl(channel, F_DUPFD_CLOEXEC, 3)),
      on_frame_(std::move(on_frame)),
      on_closed_(std::move(on_closed)) {
  wait_readable();
}

base::Result<void> Handover::give(wire::Spawn spawn, base::UniqueFd& connection,
                                  std::vector<base::UniqueFd> fds) {
  contexts::lower_rlimits(spawn.request.state, caps_);
  // Ahead of the job, so that no copy of them is left here when the program starts: it may end
  // before this process runs again, and its requester may count on what it held (flock(2), the
  // writing end of a pipe) being free.
  constexpr std::size_t kPerDatagram = wire::kMaxFdsPerMessage - 1;
  while (!fds.empty()) {
    const auto end = fds.begin() + static_cast<std::ptrdiff_t>(std::min(fds.size(), kPerDatagram));
    wire::Frame part{wire::MessageType::spawn_fds, wire::encode(wire::SpawnFds{spawn.job}), {}};
    part.fds.assign(std::make_move_iterator(fds.begin()), std::make_move_iterator(end));
    fds.erase(fds.begin(), end);
    if (auto pushed = push(part); !pushed) return pushed;
  }
  wire::Frame job{wire::MessageType::spawn, wire::encode(spawn), {}};
  job.fds.push_back(std::move(connection));
  auto given = push(job);
  if (!given) connection = std::move(job.fds.back());
  return given;
}

base::Result<void> Handover::push(wire::Frame& frame) {
  if (queue_.size() >= kMaxQueued)
    return base::failure("hand a job over", EAGAIN, "too many waiting");
  if (queue_.empty()) {
    auto sent = send(frame);
    if (sent || sent.error().code != EAGAIN) return sent;
  }
  queue_.push_back(std::move(frame));
  if (queue_.size() == 1) wait_writable();
  return {};
}

base::Result<void> Handover::send(const wire::Frame& frame) {
  std::vector<int> numbers;
  for (const auto& fd : frame.fds) numbers.push_back(fd.borrow());
  return wire::send_datagram(channel_.native_handle(), frame.type, frame.payload, numbers);
}

void Handover::wait_writable() {
  channel_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                      [this](boost::system::error_code error) {
                        if (error) return;  // cancelled: this object may be gone
                        while (!queue_.empty()) {
                          auto sent = send(queue_.front());
                          if (!sent && sent.error().code == EAGAIN) return wait_writable();
                          queue_.pop_front();
                        }
                      });
}

void Handover::wait_readable() {
  channel_.async_wait(
      boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
        if (error) return;
        const bool is_open =
            wire::take_datagrams(channel_.native_handle(), wire::Unreadable::stop, on_frame_);
        if (!is_open) return on_closed_();
        wait_readable();
      });
}

}  // namespace routerd
