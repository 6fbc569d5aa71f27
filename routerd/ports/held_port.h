#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "routerd/ports/filter.h"

namespace routerd::ports {

/// A reserved port: one socket for IPv4 and IPv6 that is bound (TCP: and listens) before anything
/// else starts, and is never closed.
///
/// A TCP port has a second socket, the guard: bound too, never listening, never given to anybody
/// and without SO_REUSEADDR and SO_REUSEPORT. It alone keeps everybody out (inet_bind_conflict,
/// net/ipv4/inet_connection_sock.c), whatever a service does to the listener it shares with us. The
/// listener has SO_REUSEADDR, which the connections accepted from it inherit: without it, those
/// that are open or in TIME_WAIT would keep us from listening again, and from starting again.
/// tests/integration/ports_test.py tries every address, option and family.
class HeldPort {
 public:
  /// EADDRINUSE names who has the port. IPv4 only where the kernel has no IPv6.
  static base::Result<HeldPort> open(const PortSpec& spec, const Reach& reach);

  const PortSpec& spec() const { return spec_; }
  /// The socket; services get copies. Borrowed.
  int socket() const { return socket_.borrow(); }

  /// False for a TCP port that somebody shut down.
  bool is_listening() const;
  /// Listens again on the same socket. It and its guard have stayed bound, so nobody can have come
  /// between.
  base::Result<void> listen_again();

  /// Undoes what a service can change on a socket it shares with us and its successor would suffer
  /// from: O_NONBLOCK, a short backlog, SO_REUSEADDR and SO_REUSEPORT, the peer of a UDP socket.
  void restore();

  /// A service binds `address` (4 or 16 bytes, as in a packet) of a port that is exposed as bound:
  /// adds what that lets through, or begins anew if it is the first since restore(). Nothing
  /// where the configuration has decided. EINVAL: not an address.
  base::Result<void> expose(std::string_view address);

  /// Connections that wait to be accepted (TCP); bytes that wait to be read (UDP).
  std::uint32_t queued() const;

 private:
  HeldPort(PortSpec spec, const Reach& reach)
      : spec_(std::move(spec)),
        reach_(reach),
        exposure_(spec_.expose == Expose::all ? Exposure::everywhere() : Exposure::loopback()) {}
  base::Result<base::UniqueFd> make_socket() const;
  base::Result<void> bind_to_all(int socket) const;
  base::Result<void> limit() const;
  int pass_the_guard() const;

  PortSpec spec_;
  Reach reach_;
  Exposure exposure_;
  /// Nobody has bound it since it was last restored.
  bool is_exposure_old_ = true;
  base::UniqueFd guard_;
  base::UniqueFd socket_;
};

}  // namespace routerd::ports
