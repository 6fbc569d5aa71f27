#include "api/job_socket.h"

#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "wire/limits.h"

namespace api {
namespace {

/// Up to `size` bytes, not taken away; with descriptors if `fds` is given.
ssize_t peek(int socket, char* bytes, std::size_t size, std::vector<base::UniqueFd>* fds) {
  iovec part{bytes, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
  if (fds != nullptr) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  const ssize_t got = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 || fds == nullptr) return got;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(each) + i * sizeof fd, sizeof fd);
      fds->emplace_back(fd);
    }
  }
  return got;
}

tl::unexpected<base::Error> cut_off() {
  return base::failure("read from a job's socket", EINPROGRESS);
}

}  // namespace

base::Result<std::optional<wire::Frame>> peek_frame(int socket) {
  char head[wire::kHeaderSize];
  const ssize_t got = peek(socket, head, sizeof head, nullptr);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got < 0) return base::os_error("read from a job's socket");
  if (got == 0) return base::failure("read from a job's socket", ECONNRESET);
  if (static_cast<std::size_t>(got) < sizeof head) return cut_off();
  auto header = wire::decode_header({head, sizeof head});
  if (!header) return tl::unexpected<base::Error>(header.error());
  wire::Frame frame{header->type, {}, {}};
  std::string bytes(wire::kHeaderSize + header->length, '\0');
  const ssize_t all = peek(socket, bytes.data(), bytes.size(), &frame.fds);
  if (all < 0) return base::os_error("read from a job's socket");
  if (static_cast<std::size_t>(all) < bytes.size()) return cut_off();
  frame.payload = bytes.substr(wire::kHeaderSize);
  return frame;
}

base::Result<void> drop_frame(int socket) {
  wire::Receiver receiver;
  auto frame = receiver.receive(socket);
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  return {};
}

}  // namespace api
