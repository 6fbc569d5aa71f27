#include "routerd/context_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "routerd/frame_session.h"
#include "routerd/listener.h"
#include "routerd/peer.h"

namespace routerd {

using boost::asio::posix::stream_descriptor;

namespace {

/// An API that was killed is back in some 20 ms.
constexpr std::chrono::milliseconds kMoment{20};
constexpr std::chrono::seconds kRefusals{1};

}  // namespace

// A socket that poll(2) calls writable has room for far more than one of these frames.
bool DoorTaker::can_take() const {
  const auto session = session_.lock();
  if (!session || session->socket() < 0) return false;
  pollfd ready{session->socket(), POLLOUT, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0 &&
         (ready.revents & (POLLHUP | POLLERR)) == 0;
}

base::Result<void> DoorTaker::give(const std::string& context, base::UniqueFd connection) const {
  const auto session = session_.lock();
  if (!session) return base::failure("hand a connection to the API", ENOTCONN);
  const int fds[] = {connection.borrow()};
  return wire::send_message(session->socket(), wire::ApiConnection{context}, fds, MSG_DONTWAIT);
}

base::Result<std::unique_ptr<ContextDoor>> ContextDoor::open(
    boost::asio::io_context& io, const DoorTaker& taker, std::string context,
    const std::string& path, unsigned uid, MayEnter may_enter, OnRefused on_refused) {
  auto socket = listen_at(path, 0600);
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  std::unique_ptr<ContextDoor> door(new ContextDoor(io, taker, std::move(*socket),
                                                    std::move(context), path, std::move(may_enter),
                                                    std::move(on_refused)));
  if (::geteuid() == 0 && ::chown(path.c_str(), uid, 0) != 0) {
    return base::os_error("chown " + path);
  }
  return door;
}

ContextDoor::ContextDoor(boost::asio::io_context& io, const DoorTaker& taker, base::UniqueFd socket,
                         std::string context, std::string path, MayEnter may_enter,
                         OnRefused on_refused)
    : taker_(taker),
      socket_(io, socket.release()),
      pause_(io),
      context_(std::move(context)),
      path_(std::move(path)),
      may_enter_(std::move(may_enter)),
      on_refused_(std::move(on_refused)) {
  wait();
}

ContextDoor::~ContextDoor() { ::unlink(path_.c_str()); }

void ContextDoor::wait() {
  socket_.async_wait(stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (!error) accept_all();  // else cancelled: this object may be gone
  });
}

void ContextDoor::wait_a_moment() {
  pause_.expires_after(kMoment);
  pause_.async_wait([this](boost::system::error_code error) {
    if (!error) wait();
  });
}

void ContextDoor::accept_all() {
  for (;;) {
    if (!taker_.can_take()) return wait_a_moment();
    base::UniqueFd connection(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!connection && errno != EAGAIN) return wait_a_moment();  // no descriptor is left, say
    if (!connection) return wait();
    // One that cannot be given is closed: its program sees the end.
    if (may_enter_(connection.borrow())) {
      (void)taker_.give(context_, std::move(connection));
    } else if (const auto now = std::chrono::steady_clock::now(); now - told_at_ >= kRefusals) {
      told_at_ = now;
      on_refused_(connection.borrow());
    }
  }
}

base::Result<std::unique_ptr<ContextDoor>> open_door(boost::asio::io_context& io,
                                                     const DoorTaker& taker,
                                                     const contexts::Context& context,
                                                     const std::string& path,
                                                     ContextDoor::OnRefused on_refused) {
  const auto& spec = context.spec();
  const bool is_wanted = spec.api_socket.value_or(spec.child_context.empty());
  if (!is_wanted || spec.is_control || context.tier() == contexts::Tier::none) return nullptr;
  const auto user = context.own_ids();
  const unsigned uid = user ? user->uid : ::geteuid();
  const auto may_enter = [&context, uid](int socket) {
    const auto peer = peer_of(socket);
    return peer && (peer->credentials.uid == uid || peer->credentials.uid == 0) &&
           context.contains(socket, peer->pid);
  };
  return ContextDoor::open(io, taker, spec.name, path, uid, may_enter, std::move(on_refused));
}

}  // namespace routerd
