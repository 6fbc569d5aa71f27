// The exported functions. Async-signal-safe: no allocation, no locks, no stdio. errno is the
// caller's, and kept where nothing fails.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/bind/grant.h"
#include "preload/bind/names.h"

namespace preload::bind {
namespace {

/// libc's own: they are cancellation points, which system calls by hand are not.
struct RealFunctions {
  int (*accept)(int, sockaddr*, socklen_t*);
  int (*accept4)(int, sockaddr*, socklen_t*, int);
  ssize_t (*recvfrom)(int, void*, size_t, int, sockaddr*, socklen_t*);
};

template <typename Function>
void find_next(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

RealFunctions real_functions;

/// Idempotent: another library's constructor may have called before ours runs.
[[gnu::constructor]] void find_real() {
  find_next("accept", real_functions.accept);
  find_next("accept4", real_functions.accept4);
  find_next("recvfrom", real_functions.recvfrom);
}

const RealFunctions& real() {
  if (real_functions.recvfrom == nullptr) find_real();
  return real_functions;
}

/// What this process has bound, by port; forked children have it too. Written without locks: two
/// threads that bind the same port at once race for it in a plain program as well.
struct Adopted {
  uint16_t port = 0;
  /// Some socket of it was bound to an IPv4 address.
  bool is_ipv4 = false;
  int fd = -1;
  uint64_t cookie = 0;
};
constexpr int kMaxAdopted = 32;
Adopted adopted_ports[kMaxAdopted];

Adopted* find_adopted(uint16_t port) {
  for (Adopted& each : adopted_ports) {
    if (each.port == port) return &each;
  }
  return nullptr;
}

uint64_t cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size);
  return cookie;
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/// Port of an IPv4 or IPv6 address; 0 for anything else.
uint16_t port_of(const sockaddr* address, socklen_t size) {
  if (address == nullptr) return 0;
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  }
  return 0;
}

/// True if this process has the same socket already under another number.
bool is_held_already(const Adopted& before, int held, int fd) {
  return before.fd != fd && before.fd >= 0 && cookie_of(before.fd) == before.cookie &&
         cookie_of(held) == before.cookie;
}

/// 0, or the errno of bind(2).
int adopt(int fd, int held, const sockaddr* address, uint16_t port) {
  const int status = fcntl(fd, F_GETFL);
  const int descriptor_flags = fcntl(fd, F_GETFD);
  if (status < 0 || descriptor_flags < 0) return errno;
  Adopted* before = find_adopted(port);
  if (before != nullptr && (status & O_NONBLOCK) == 0 && is_held_already(*before, held, fd)) {
    return EADDRINUSE;
  }
  fcntl(held, F_SETFL, status);
  if (dup3(held, fd, (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0) return errno;
  if (before == nullptr) before = find_adopted(0);
  if (before == nullptr) return 0;
  const bool is_ipv4 = address->sa_family == AF_INET || (before->port == port && before->is_ipv4);
  *before = {port, is_ipv4, fd, cookie_of(fd)};
  return 0;
}

/// The held socket for `fd`, -1 if the bind is not ours to change, else a negative errno below -1.
constexpr int kNotOurs = INT_MIN;
int held_for(int fd, const sockaddr* address, uint16_t port) {
  const int type = option_of(fd, SO_TYPE);
  if (port == 0 || (type != SOCK_STREAM && type != SOCK_DGRAM)) return kNotOurs;
  const Protocol protocol = type == SOCK_STREAM ? Protocol::tcp : Protocol::udp;
  if (!names_port(value_of(environ, "AIRLOCK_PORTS"), protocol, port)) return kNotOurs;
  const char* path = value_of(environ, "AIRLOCK_PORTS_SOCKET");
  if (path == nullptr) return kNotOurs;
  if (address->sa_family == AF_INET) {
    const in_addr& ipv4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return ask_for_port(path, protocol, port, &ipv4, sizeof(ipv4));
  }
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return ask_for_port(path, protocol, port, &ipv6, sizeof(ipv6));
}

class KeepErrno {
 public:
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_ = errno;
};

/// Undoes what a dual-stack socket does to the addresses of IPv4 peers, for a service that bound an
/// IPv4 address.
void show_as_ipv4(int fd, sockaddr_storage& address, socklen_t& size) {
  if (address.ss_family != AF_INET6 || size < sizeof(sockaddr_in6)) return;
  const auto* mapped = reinterpret_cast<const sockaddr_in6*>(&address);
  const bool is_any = IN6_IS_ADDR_UNSPECIFIED(&mapped->sin6_addr);
  if (!IN6_IS_ADDR_V4MAPPED(&mapped->sin6_addr) && !is_any) return;
  sockaddr_in6 own{};
  socklen_t own_size = sizeof(own);
  if (syscall(SYS_getsockname, fd, &own, &own_size) != 0 || own.sin6_port == 0) return;
  const Adopted* port = find_adopted(ntohs(own.sin6_port));
  if (port == nullptr || !port->is_ipv4) return;
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = mapped->sin6_port;
  plain.sin_addr.s_addr = mapped->sin6_addr.s6_addr32[3];
  memcpy(&address, &plain, sizeof(plain));
  size = sizeof(plain);
}

/// Calls `real(address, size)`, which returns -1 or fills both in as accept(2) does, and shows the
/// address as the service expects it. Its room may be that of an IPv4 address only.
template <typename Call>
auto with_address(int fd, sockaddr* address, socklen_t* size, Call real) {
  if (address == nullptr || size == nullptr || adopted_ports[0].port == 0) {
    return real(address, size);
  }
  sockaddr_storage full{};
  socklen_t full_size = sizeof(full);
  const auto result = real(reinterpret_cast<sockaddr*>(&full), &full_size);
  if (result < 0) return result;
  const KeepErrno keep;
  // Of a connection that was just accepted `fd` is the listener: it has the same port.
  show_as_ipv4(fd, full, full_size);
  memcpy(address, &full, *size < full_size ? *size : full_size);
  *size = full_size;
  return result;
}

}  // namespace
}  // namespace preload::bind

using preload::bind::KeepErrno;
using preload::bind::with_address;

#pragma GCC visibility push(default)
extern "C" {

int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  const int before = errno;
  const uint16_t port = preload::bind::port_of(address, size);
  const int held = preload::bind::held_for(fd, address, port);
  errno = before;
  if (held == preload::bind::kNotOurs) {
    return static_cast<int>(syscall(SYS_bind, fd, address, size));
  }
  const int error = held < 0 ? -held : preload::bind::adopt(fd, held, address, port);
  if (held >= 0) close(held);
  errno = error == 0 ? before : error;
  return error == 0 ? 0 : -1;
}

int listen(int fd, int backlog) noexcept {
  {
    const KeepErrno keep;
    sockaddr_in6 own{};
    socklen_t size = sizeof(own);
    const bool is_bound = syscall(SYS_getsockname, fd, &own, &size) == 0 && own.sin6_port != 0 &&
                          (own.sin6_family == AF_INET6 || own.sin6_family == AF_INET);
    if (is_bound && preload::bind::find_adopted(ntohs(own.sin6_port)) != nullptr) backlog = INT_MAX;
  }
  return static_cast<int>(syscall(SYS_listen, fd, backlog));
}

int accept(int fd, sockaddr* address, socklen_t* size) {
  return with_address(fd, address, size, [fd](sockaddr* full, socklen_t* full_size) {
    return preload::bind::real().accept(fd, full, full_size);
  });
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  return with_address(fd, address, size, [fd, flags](sockaddr* full, socklen_t* full_size) {
    return preload::bind::real().accept4(fd, full, full_size, flags);
  });
}

int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  return with_address(fd, address, size, [fd](sockaddr* full, socklen_t* full_size) {
    return static_cast<int>(syscall(SYS_getsockname, fd, full, full_size));
  });
}

int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  return with_address(fd, address, size, [fd](sockaddr* full, socklen_t* full_size) {
    return static_cast<int>(syscall(SYS_getpeername, fd, full, full_size));
  });
}

ssize_t recvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* address,
                 socklen_t* size) {
  return with_address(fd, address, size, [=](sockaddr* full, socklen_t* full_size) {
    return preload::bind::real().recvfrom(fd, buffer, length, flags, full, full_size);
  });
}
}
#pragma GCC visibility pop
