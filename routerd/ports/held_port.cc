#include "routerd/ports/held_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "routerd/ports/owner.h"

namespace routerd::ports {

using base::Result;

namespace {

// The kernel cuts it to net.core.somaxconn (listen(2)).
constexpr int kBacklog = 1 << 16;

void set(int socket, int option, int value) {
  ::setsockopt(socket, SOL_SOCKET, option, &value, sizeof value);
}

bool is_tcp(const PortSpec& spec) { return spec.key.protocol == Protocol::tcp; }

/// A uid that nobody has, and nobody can guess in time.
uid_t random_uid() {
  std::uint32_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return (number & 0x3fffffff) | 0x40000000;
}

}  // namespace

Result<HeldPort> HeldPort::open(const PortSpec& spec, const Reach& reach) {
  HeldPort port(spec, reach);
  if (is_tcp(spec)) {
    auto guard = port.make_socket();
    if (!guard) return tl::unexpected<base::Error>(guard.error());
    port.guard_ = std::move(*guard);
    set(port.guard_.borrow(), SO_REUSEADDR, 1);
    if (auto bound = port.bind_to_all(port.guard_.borrow()); !bound) {
      return tl::unexpected<base::Error>(bound.error());
    }
  }
  auto socket = port.make_socket();
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  port.socket_ = std::move(*socket);
  if (is_tcp(spec)) set(port.socket(), SO_REUSEADDR, 1);
  // The filter first: nothing may come through before it.
  auto done = port.limit();
  if (done) done = port.bind_to_all(port.socket());
  if (done && is_tcp(spec) && ::listen(port.socket(), kBacklog) != 0) {
    done = base::failure("hold " + to_string(spec.key), errno, "taken by " + who_has(spec.key));
  }
  if (!done) return tl::unexpected<base::Error>(done.error());
  if (is_tcp(spec)) set(port.guard_.borrow(), SO_REUSEADDR, 0);
  return port;
}

// IPv4 and IPv6 in one; IPv4 where the kernel has nothing else.
Result<base::UniqueFd> HeldPort::make_socket() const {
  const int type = (is_tcp(spec_) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC;
  base::UniqueFd socket(::socket(AF_INET6, type, 0));
  if (!socket && errno == EAFNOSUPPORT) socket.reset(::socket(AF_INET, type, 0));
  if (!socket) return base::os_error("create a socket for " + to_string(spec_.key));
  return socket;
}

Result<void> HeldPort::bind_to_all(int socket) const {
  int family = AF_INET6;
  socklen_t size = sizeof family;
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
  const int off = 0;
  if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_storage address{};
  address.ss_family = static_cast<sa_family_t>(family);
  // At the same place in both kinds of address.
  reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(spec_.key.number);
  size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0) return {};
  if (errno == EADDRINUSE) {
    return base::failure("hold " + to_string(spec_.key), EADDRINUSE,
                         "taken by " + who_has(spec_.key) + "; stop it or choose another port");
  }
  return base::os_error("hold " + to_string(spec_.key),
                        errno == EACCES ? "ports below 1024 need CAP_NET_BIND_SERVICE" : "");
}

// What the configuration decides is locked: no service can take it off again.
Result<void> HeldPort::limit() const {
  auto instructions = filter_for(exposure_, reach_);
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  const int none = 0;
  const int limited =
      instructions.empty()
          ? ::setsockopt(socket(), SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none)
          : ::setsockopt(socket(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  if (limited != 0 && errno != ENOENT) {  // ENOENT: there is no filter to take off
    return base::os_error("limit who reaches " + to_string(spec_.key));
  }
  if (spec_.expose == Expose::as_bound || instructions.empty()) return {};
  const int on = 1;
  if (::setsockopt(socket(), SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on) != 0) {
    return base::os_error("lock who reaches " + to_string(spec_.key));
  }
  return {};
}

Result<void> HeldPort::expose(std::string_view address) {
  if (spec_.expose != Expose::as_bound) return {};
  if (std::exchange(is_exposure_old_, false)) exposure_ = Exposure();
  if (!exposure_.add(address)) return base::failure("expose " + to_string(spec_.key), EINVAL);
  return limit();
}

bool HeldPort::is_listening() const {
  int listening = 0;
  socklen_t size = sizeof listening;
  return ::getsockopt(socket(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
         listening != 0;
}

// listen(2) of a socket that does not listen asks for the port anew, and the guard stands in its
// way as in everybody's. It lets a socket with SO_REUSEPORT pass that has the same owner; so for
// this one call both belong to a user whom nobody else can be. Where there is no right to change
// owners, all contexts are of one user anyhow.
int HeldPort::pass_the_guard() const {
  const uid_t uid = random_uid();
  const uid_t own = ::geteuid();
  for (const int each : {guard_.borrow(), socket()}) {
    (void)::fchown(each, uid, static_cast<gid_t>(-1));
    set(each, SO_REUSEPORT, 1);
  }
  const int error = ::listen(socket(), kBacklog) == 0 ? 0 : errno;
  for (const int each : {guard_.borrow(), socket()}) {
    set(each, SO_REUSEPORT, 0);
    (void)::fchown(each, own, static_cast<gid_t>(-1));
  }
  return error;
}

Result<void> HeldPort::listen_again() {
  set(socket(), SO_REUSEADDR, 1);
  // Of a listening socket listen(2) changes the backlog alone.
  if (is_listening() && ::listen(socket(), kBacklog) == 0) return {};
  if (pass_the_guard() == 0) return {};
  // Whoever shut it down may have connected it to somewhere since.
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)::connect(socket(), &none, sizeof none);
  if (const int error = pass_the_guard(); error != 0) {
    return base::failure("listen on " + to_string(spec_.key), error);
  }
  return {};
}

void HeldPort::restore() {
  is_exposure_old_ = true;
  (void)base::set_nonblocking(socket(), false);
  set(socket(), SO_REUSEPORT, 0);
  if (is_tcp(spec_)) {
    (void)listen_again();
    return;
  }
  set(socket(), SO_REUSEADDR, 0);
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)::connect(socket(), &none, sizeof none);
}

std::uint32_t HeldPort::queued() const {
  if (!is_tcp(spec_)) {
    int bytes = 0;
    return ::ioctl(socket(), FIONREAD, &bytes) == 0 ? static_cast<std::uint32_t>(bytes) : 0;
  }
  // Of a listener, tcpi_unacked is the length of its accept queue (tcp_get_info, net/ipv4/tcp.c).
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_unacked : 0;
}

}  // namespace routerd::ports
