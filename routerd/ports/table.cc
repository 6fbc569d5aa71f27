#include "routerd/ports/table.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <bit>
#include <boost/asio/io_context.hpp>

namespace routerd::ports {

PortTable::PortTable(boost::asio::io_context& io, Reach reach)
    : reach_(reach), hangups_(io, ::epoll_create1(EPOLL_CLOEXEC)) {
  wait();
}

base::Result<void> PortTable::reserve(const PortSpec& spec) {
  if (const auto held = ports_.find(spec.key); held != ports_.end()) {
    if (held->second.port.spec().expose == spec.expose) return {};
    return base::failure("expose of " + to_string(spec.key), EINVAL,
                         "cannot change while the port is held; restart the daemon");
  }
  auto port = HeldPort::open(spec, reach_);
  if (!port) return tl::unexpected<base::Error>(port.error());
  watch(*port);
  ports_.emplace(spec.key, Entry{std::move(*port)});
  return {};
}

void PortTable::release(const PortKey& key) {
  const auto held = ports_.find(key);
  if (held == ports_.end()) return;
  // Copies keep an epoll registration alive that only its number can remove (epoll(7)).
  ::epoll_ctl(hangups_.native_handle(), EPOLL_CTL_DEL, held->second.port.socket(), nullptr);
  ports_.erase(held);
}

HeldPort* PortTable::find(const PortKey& key) {
  const auto held = ports_.find(key);
  return held == ports_.end() ? nullptr : &held->second.port;
}

std::uint64_t PortTable::resets(const PortKey& key) const {
  const auto held = ports_.find(key);
  return held == ports_.end() ? 0 : held->second.resets;
}

void PortTable::watch(const HeldPort& port) {
  if (port.spec().key.protocol != Protocol::tcp) return;
  epoll_event event{};  // no events asked for: EPOLLHUP and EPOLLERR come all the same
  ::epoll_ctl(hangups_.native_handle(), EPOLL_CTL_ADD, port.socket(), &event);
}

void PortTable::wait() {
  hangups_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code error) {
                        if (error) return;
                        heal();
                        wait();
                      });
}

void PortTable::heal() {
  epoll_event events[16];
  ::epoll_wait(hangups_.native_handle(), events, 16, 0);
  for (auto& [key, entry] : ports_) {
    if (key.protocol != Protocol::tcp || entry.port.is_listening()) continue;
    ++entry.resets;
    if (auto listening = entry.port.listen_again(); !listening) {
      spdlog::error("port={} op=listen_again error=\"{}\"", key.number,
                    listening.error().message());
      continue;
    }
    // A service may do it in a loop.
    if (!std::has_single_bit(entry.resets)) continue;
    spdlog::warn(
        "port={} resets={} was shut down by its service; listens again, waiting clients were reset",
        key.number, entry.resets);
  }
}

}  // namespace routerd::ports
