#pragma once

// TCP sockets of this network namespace, as the kernel tells of them (sock_diag(7)). No privilege
// is needed.

#include <sys/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"

namespace routerd::ports {

using Endpoint = boost::asio::ip::tcp::endpoint;

/// IPv4 as such, also where a socket of IPv6 carries it.
boost::asio::ip::address plain(const boost::asio::ip::address& address);

struct TcpSocket {
  Endpoint local;  ///< plain()
  /// Of sockfs; 0: no program has it open any more.
  ino_t inode = 0;
  /// Who made it; only CAP_CHOWN changes that.
  unsigned uid = 0;
  /// The cgroup (version 2) that its maker was in then; nothing ever changes that. 0: not known
  /// (Linux < 5.7).
  std::uint64_t cgroup = 0;
};

/// The socket that is connected from `local` to `remote`, if there is one here. Blocks for some µs.
base::Result<std::optional<TcpSocket>> find_connected(const Endpoint& local,
                                                      const Endpoint& remote);

/// All that listen. Blocks for some µs.
base::Result<std::vector<TcpSocket>> listening();

/// False if the kernel says that `address` is none of this network namespace's.
bool is_local(const boost::asio::ip::address& address);

}  // namespace routerd::ports
