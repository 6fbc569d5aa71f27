// What a program reads.

#include <unistd.h>

#include "api/exec.h"
#include "base/file.h"

namespace api {

void Exec::set_input(base::UniqueFd fd) {
  if (!fd) return;
  (void)base::set_nonblocking(fd.borrow(), true);
  input_.emplace(host_.io, fd.release());
  input_state_ = Input::open;
}

base::Result<std::size_t> Exec::write_input(std::string_view bytes) {
  if (!input_) return base::failure("write input", EPIPE);
  const ssize_t written = ::write(input_->native_handle(), bytes.data(), bytes.size());
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (written < 0) return base::os_error("write input");
  input_bytes_ += static_cast<std::uint64_t>(written);
  return static_cast<std::size_t>(written);
}

void Exec::await_input(std::function<void()> action) {
  if (!input_) return;
  input_->async_wait(
      boost::asio::posix::stream_descriptor::wait_write,
      [action = std::move(action), weak = weak_from_this()](boost::system::error_code error) {
        if (!error && weak.lock()) action();
      });
}

void Exec::close_input() {
  if (!input_) return;
  if (facts_.has_terminal && !has_ended()) {
    // The end of a terminal's input is a character.
    (void)!::write(input_->native_handle(), "\x04", 1);
    return;
  }
  input_.reset();
  input_state_ = Input::closed;
  // The daemon has a copy of the pipe's end.
  host_.daemon.jobs().send(wire::Release{facts_.id, "stdin"});
}

}  // namespace api
