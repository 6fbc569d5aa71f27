#include "routerd/services/prober.h"

#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

namespace routerd::services {

using boost::asio::posix::stream_descriptor;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLongestPause{500};
constexpr std::size_t kStatusLine = 12;  // "HTTP/1.1 200"

/// The status of an HTTP/1 answer's beginning; 0 if it is none.
int http_status(std::string_view answer) {
  if (answer.size() < kStatusLine || !answer.starts_with("HTTP/1.") || answer[8] != ' ') return 0;
  int status = 0;
  for (const char digit : answer.substr(9, 3)) {
    if (digit < '0' || digit > '9') return 0;
    status = status * 10 + (digit - '0');
  }
  return status;
}

}  // namespace

base::Result<void> check_can_probe(const ports::Reach& reach) {
  if (reach.from_here) return {};
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::setsockopt(socket.borrow(), SOL_SOCKET, SO_MARK, &reach.mark, sizeof reach.mark) == 0) {
    return {};
  }
  return base::os_error("probe services with control.reachable: false",
                        "CAP_NET_ADMIN is needed; or give each service 'ready: none'");
}

Prober::Prober(Means means, const ServiceSpec& spec, OnReady on_ready)
    : means_(std::move(means)),
      probe_(spec.ready),
      on_ready_(std::move(on_ready)),
      timer_(means_.io),
      connection_(means_.io) {
  for (const auto& port : spec.ports) {
    if (port.key.protocol != ports::Protocol::tcp) continue;
    port_ = port.key;
    break;
  }
  ask();
}

void Prober::succeed() {
  boost::system::error_code ignored;
  connection_.close(ignored);
  timer_.cancel();
  if (const auto on_ready = std::exchange(on_ready_, nullptr)) on_ready();
}

void Prober::ask() {
  switch (probe_.kind) {
    case Probe::Kind::none:
      timer_.expires_after(milliseconds{0});
      return timer_.async_wait(guarded([this] { succeed(); }));
    case Probe::Kind::command:
      return run_command();
    case Probe::Kind::accept:
    case Probe::Kind::http:
      return connect();
  }
}

void Prober::ask_again_later() {
  boost::system::error_code ignored;
  connection_.close(ignored);
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ + pause_ / 4, kLongestPause);
  timer_.async_wait(guarded([this] { ask(); }));
}

void Prober::connect() {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return ask_again_later();
  const auto& reach = means_.ports.reach();
  if (!reach.from_here) {
    ::setsockopt(socket.borrow(), SOL_SOCKET, SO_MARK, &reach.mark, sizeof reach.mark);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_.number);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected =
      ::connect(socket.borrow(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (connected != 0 && errno != EINPROGRESS) return ask_again_later();
  connection_.assign(socket.release());
  await_connected();
}

void Prober::await_connected() {
  const auto go_on = [this] {
    int failed = 0;
    socklen_t size = sizeof failed;
    ::getsockopt(connection_.native_handle(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0) return ask_again_later();
    if (probe_.kind == Probe::Kind::accept) return await_accept();
    const std::string question =
        "GET " + probe_.path + " HTTP/1.0\r\nHost: localhost\r\nUser-Agent: airlock\r\n\r\n";
    answer_.clear();
    ::send(connection_.native_handle(), question.data(), question.size(), MSG_NOSIGNAL);
    await_answer();
  };
  connection_.async_wait(stream_descriptor::wait_write, guarded(go_on));
}

// Accepted is what no longer waits in the port's queue, or is answered. We say at once that nothing
// will come: a service that serves one client after the other must not wait for us, while others
// keep its queue from getting empty.
void Prober::await_accept() {
  ::shutdown(connection_.native_handle(), SHUT_WR);
  connection_.async_wait(stream_descriptor::wait_read, guarded([this] {
                           char byte = 0;
                           const ssize_t got = ::recv(connection_.native_handle(), &byte, 1, 0);
                           if (got >= 0) return succeed();
                           ask_again_later();
                         }));
  await_empty_queue();
}

void Prober::await_empty_queue() {
  const auto* port = means_.ports.find(port_);
  if (port == nullptr) return;
  if (port->queued() == 0) return succeed();
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ + pause_ / 4, kLongestPause);
  timer_.async_wait(guarded([this] { await_empty_queue(); }));
}

void Prober::await_answer() {
  const auto go_on = [this] {
    char block[64];
    const ssize_t got = ::recv(connection_.native_handle(), block, sizeof block, 0);
    if (got < 0 && errno == EAGAIN) return await_answer();
    if (got <= 0) return ask_again_later();
    answer_.append(block, static_cast<std::size_t>(got));
    if (answer_.size() < kStatusLine) return await_answer();
    const int status = http_status(answer_);
    if (status >= 100 && status < 500) return succeed();
    ask_again_later();
  };
  connection_.async_wait(stream_descriptor::wait_read, guarded(go_on));
}

void Prober::run_command() {
  auto run = means_.run(probe_.command, [this, alive = std::weak_ptr(alive_)](const End& end) {
    if (alive.expired()) return;
    if (end.is_success) return succeed();
    ask_again_later();
  });
  if (!run) return ask_again_later();
  run_ = std::move(*run);
}

}  // namespace routerd::services
