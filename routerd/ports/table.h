#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>

#include "routerd/ports/held_port.h"

namespace routerd::ports {

/// All ports the daemon holds. Watches for listeners that are shut down by the services that share
/// them, and listens again.
class PortTable {
 public:
  PortTable(boost::asio::io_context& io, Reach reach);

  /// Holds a port from now on; of one that is held already only the name may change (EINVAL if what
  /// is exposed would: that filter is locked).
  base::Result<void> reserve(const PortSpec& spec);
  /// Gives it up. Copies that services have go on to work until they close them.
  void release(const PortKey& key);
  /// nullptr if it is not held. Stays valid until released.
  HeldPort* find(const PortKey& key);
  /// How often a listener was shut down and listens again; each time the connections that waited
  /// in it were reset.
  std::uint64_t resets(const PortKey& key) const;

  const Reach& reach() const { return reach_; }

 private:
  struct Entry {
    HeldPort port;
    std::uint64_t resets = 0;
  };
  void watch(const HeldPort& port);
  void wait();
  void heal();

  Reach reach_;
  /// An epoll(7) that reports EPOLLHUP only: connections to the ports are none of our business and
  /// must not wake the daemon.
  boost::asio::posix::stream_descriptor hangups_;
  std::map<PortKey, Entry> ports_;
};

}  // namespace routerd::ports
