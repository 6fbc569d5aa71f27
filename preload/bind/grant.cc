// docs/PROTOCOL.md, PortRequest and PortGrant, by hand: the codec needs a heap.
#include "preload/bind/grant.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace preload::bind {
namespace {

constexpr uint16_t kVersion = 1;
constexpr uint16_t kPortRequest = 50;
constexpr uint16_t kPortGrant = 51;

struct [[gnu::packed]] Header {
  uint32_t length;
  uint16_t type;
  uint16_t version;
  uint32_t fd_count;
};

struct [[gnu::packed]] Request {
  Header header;
  uint16_t port;
  uint8_t protocol;
  uint32_t address_size;
  char address[16];
};

struct [[gnu::packed]] Grant {
  Header header;
  int32_t error;
};

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path) + 1;
  if (length > sizeof(address.sun_path)) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, length);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -errno;
  const timeval patience{kAnswerMs / 1000, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return connection;
  }
  const int error = errno;
  close(connection);
  return -error;
}

/// The descriptor of a received message, -1 without.
int descriptor_of(msghdr& message) {
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  const bool has_one = rights != nullptr && rights->cmsg_level == SOL_SOCKET &&
                       rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof(int));
  int descriptor = -1;
  if (has_one) memcpy(&descriptor, CMSG_DATA(rights), sizeof(descriptor));
  return descriptor;
}

/// The grant's few bytes come in one piece: routerd sends them in one sendmsg(2).
int receive_grant(int connection) {
  Grant grant{};
  iovec bytes{&grant, sizeof(grant)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = -1;
  do {
    got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  const int socket = descriptor_of(message);
  const bool is_grant =
      got == sizeof(grant) && grant.header.type == kPortGrant && grant.header.version == kVersion;
  if (is_grant && grant.error == 0 && socket >= 0) return socket;
  if (socket >= 0) close(socket);
  return is_grant && grant.error > 0 ? -grant.error : -EPROTO;
}

}  // namespace

int ask_for_port(const char* path, Protocol protocol, uint16_t port, const void* address,
                 uint32_t size) {
  const int connection = connect_to(path);
  if (connection < 0) return connection;
  constexpr uint32_t kWithoutAddress = 7;  // of the payload
  Request request{{kWithoutAddress + size, kPortRequest, kVersion, 0},
                  port,
                  static_cast<uint8_t>(protocol),
                  size,
                  {}};
  memcpy(request.address, address, size);
  const size_t length = sizeof(Header) + kWithoutAddress + size;
  const ssize_t sent = send(connection, &request, length, MSG_NOSIGNAL);
  const int result = sent == static_cast<ssize_t>(length) ? receive_grant(connection) : -EPIPE;
  close(connection);
  return result;
}

}  // namespace preload::bind
