#include "routerd/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>

#include "wire/limits.h"

namespace routerd {

using namespace std::chrono_literals;

base::Result<base::UniqueFd> listen_at(const std::string& path, unsigned mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return base::failure("listen on " + path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return base::os_error("socket");
  ::unlink(path.c_str());
  if (::bind(socket.borrow(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::os_error("listen on " + path);
  }
  if (::chmod(path.c_str(), mode) != 0) return base::os_error("chmod " + path);
  if (::listen(socket.borrow(), SOMAXCONN) != 0) return base::os_error("listen on " + path);
  return socket;
}

base::Result<std::unique_ptr<Listener>> Listener::open(boost::asio::io_context& io,
                                                       const std::string& path, unsigned mode,
                                                       OnAccept on_accept) {
  auto socket = listen_at(path, mode);
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  // What is accepted has it, too: who sends is told with every message (wire::Frame::sender).
  const int on = 1;
  if (::setsockopt(socket->borrow(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return base::os_error("SO_PASSCRED");
  }
  return std::unique_ptr<Listener>(
      new Listener(io, std::move(*socket), path, std::move(on_accept)));
}

Listener::Listener(boost::asio::io_context& io, base::UniqueFd socket, std::string path,
                   OnAccept on_accept)
    : socket_(io, socket.release()),
      deadline_(io),
      backoff_(io),
      path_(std::move(path)),
      on_accept_(std::move(on_accept)),
      reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  wait();
}

Listener::~Listener() { ::unlink(path_.c_str()); }

void Listener::wait() {
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](boost::system::error_code error) {
                       if (!error) accept_all();
                     });
}

void Listener::accept_all() {
  for (;;) {
    base::UniqueFd connection(
        ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection && (errno == EMFILE || errno == ENFILE)) {
      // Turn this one away with the descriptor kept for it, then let others finish.
      reserve_.reset();
      connection.reset(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      connection.reset();
      reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      backoff_.expires_after(50ms);
      backoff_.async_wait([this](boost::system::error_code error) {
        if (!error) wait();
      });
      return;
    }
    if (!connection && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!connection) return wait();
    auto session = on_accept_(std::move(connection));
    if (!session) continue;
    session->start();
    if (session->is_waiting_for_first()) waiting_.push_back(session);
    drop_late();
  }
}

// Sessions come in the order of their deadlines.
void Listener::drop_late() {
  const auto now = std::chrono::steady_clock::now();
  while (!waiting_.empty()) {
    const auto oldest = waiting_.front().lock();
    const bool is_done = !oldest || !oldest->is_waiting_for_first();
    const bool is_late = !is_done && (now - oldest->accepted() >= wire::kRequestDeadlineMs * 1ms ||
                                      waiting_.size() > wire::kMaxPendingConnections);
    if (!is_done && !is_late) break;
    waiting_.pop_front();
    if (is_late) oldest->close();
  }
  if (!waiting_.empty()) arm_deadline();
}

void Listener::arm_deadline() {
  if (is_armed_) return;
  is_armed_ = true;
  deadline_.expires_after(1s);
  deadline_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // cancelled: this object may be gone
    is_armed_ = false;
    drop_late();
  });
}

}  // namespace routerd
