#include "wire/channel.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "wire/limits.h"

namespace wire {
namespace {

/// As the kernel has it: libcs show it to GNU programs only.
struct Credentials {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};
constexpr int kScmCredentials = 2;  // SCM_CREDENTIALS, linux/socket.h

/// Room for the control messages of kMaxFdsPerMessage descriptors and of credentials.
union ControlBuffer {
  char bytes[CMSG_SPACE(kMaxFdsPerMessage * sizeof(int)) + CMSG_SPACE(sizeof(Credentials))];
  cmsghdr align;
};

void attach_fds(msghdr& message, ControlBuffer& control, std::span<const int> fds) {
  if (fds.empty()) return;
  message.msg_control = control.bytes;
  message.msg_controllen =
      static_cast<decltype(message.msg_controllen)>(CMSG_SPACE(fds.size_bytes()));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = static_cast<decltype(header->cmsg_len)>(CMSG_LEN(fds.size_bytes()));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
}

void adopt_fds(msghdr& message, std::vector<base::UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

/// Who has sent `message`, as SO_PASSCRED tells; 0 where it is not on.
pid_t sender_of(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != kScmCredentials) continue;
    Credentials sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    return sender.pid;
  }
  return 0;
}

ssize_t send_retrying(int socket, const msghdr& message, int flags) {
  ssize_t sent = -1;
  do {
    // Past libc: musl's wrapper copies control messages into 1024 bytes, too few for 253
    // descriptors. The padding of its structures must be zero then; all are value-initialised.
    sent = ::syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

/// The part of header+payload from `offset`, at most `length` bytes, as one or two vectors.
int slice(iovec (&vectors)[2], std::string_view header, std::string_view payload,
          std::size_t offset, std::size_t length) {
  int used = 0;
  for (const std::string_view part : {header, payload}) {
    const std::size_t skipped = std::min(offset, part.size());
    const std::size_t taken = std::min(length, part.size() - skipped);
    offset -= skipped;
    length -= taken;
    if (taken == 0) continue;
    vectors[used++] = {const_cast<char*>(part.data() + skipped), taken};
  }
  return used;
}

}  // namespace

base::Result<void> send_frame(int socket, MessageType type, std::string_view payload,
                              std::span<const int> fds, int flags) {
  if (payload.size() > kMaxPayload || fds.size() > kMaxPassedFds) {
    return base::failure("send a frame", EMSGSIZE);
  }
  const std::string header = encode_header({.length = static_cast<std::uint32_t>(payload.size()),
                                            .type = type,
                                            .version = kVersion,
                                            .fd_count = static_cast<std::uint32_t>(fds.size())});
  const std::size_t total = header.size() + payload.size();
  for (std::size_t offset = 0; offset < total;) {
    const auto chunk = fds.first(std::min(fds.size(), kMaxFdsPerMessage));
    // While descriptors are left over, a single byte carries a full load of them.
    const std::size_t length = chunk.size() < fds.size() ? 1 : total - offset;
    iovec vectors[2];
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = slice(vectors, header, payload, offset, length);
    attach_fds(message, control, chunk);
    const ssize_t sent = send_retrying(socket, message, flags);
    if (sent < 0) return base::os_error("send a frame");
    offset += static_cast<std::size_t>(sent);
    fds = fds.subspan(chunk.size());
  }
  return {};
}

void Receiver::reset() {
  bytes_.clear();
  header_.reset();
  fds_.clear();
  sender_.reset();
}

void Receiver::note_sender(pid_t pid) {
  if (!sender_) sender_ = pid;
  if (*sender_ != pid) sender_ = 0;
}

/// Reads until bytes_ holds `wanted` bytes: true. False: no more for now.
base::Result<bool> Receiver::read_some(int socket, std::size_t wanted) {
  while (bytes_.size() < wanted) {
    const std::size_t have = bytes_.size();
    // At most 256 KiB at a time: a lying length must not make us allocate more than arrives.
    const std::size_t room = std::min<std::size_t>(wanted - have, 256u << 10);
    bytes_.resize(have + room);
    iovec vector{bytes_.data() + have, room};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const int error = errno;
    bytes_.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error == EINTR) continue;
    if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK)) return false;
    if (got < 0) return base::failure("receive", error);
    adopt_fds(message, fds_);
    if (got == 0) return base::failure("receive", ECONNRESET, "closed by the other side");
    note_sender(sender_of(message));
    if ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > kMaxPassedFds) {
      return base::failure("receive descriptors", EMSGSIZE, "some were cut off");
    }
  }
  return true;
}

base::Result<std::optional<Frame>> Receiver::receive(int socket) {
  auto step = read_some(socket, header_ ? kHeaderSize + header_->length : kHeaderSize);
  if (step && *step && !header_) {
    auto header = decode_header(bytes_);
    if (!header) {
      reset();
      return tl::unexpected<base::Error>(header.error());
    }
    header_ = *header;
    step = read_some(socket, kHeaderSize + header_->length);
  }
  if (!step) {
    reset();
    return tl::unexpected<base::Error>(step.error());
  }
  if (!*step) return std::optional<Frame>();
  return finish();
}

base::Result<std::optional<Frame>> Receiver::finish() {
  std::optional<Frame> frame;
  if (fds_.size() == header_->fd_count) {
    bytes_.erase(0, kHeaderSize);
    frame = Frame{header_->type, std::move(bytes_), std::move(fds_), sender_.value_or(0)};
  }
  reset();
  if (!frame) return base::failure("receive", EBADMSG, "wrong number of descriptors");
  return frame;
}

namespace {

base::Result<base::UniqueFd> payload_memfd(std::string_view payload) {
  base::UniqueFd memory(::memfd_create("airlock-payload", MFD_CLOEXEC));
  if (!memory) return base::os_error("memfd_create");
  while (!payload.empty()) {
    const ssize_t n = ::write(memory.borrow(), payload.data(), payload.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::os_error("write to a memfd");
    payload.remove_prefix(static_cast<std::size_t>(n));
  }
  return memory;
}

base::Result<std::string> read_payload(int memory, std::size_t length) {
  std::string payload(length, '\0');
  for (std::size_t have = 0; have < length;) {
    const ssize_t n =
        ::pread(memory, payload.data() + have, length - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return base::failure("read a payload", n < 0 ? errno : EBADMSG);
    have += static_cast<std::size_t>(n);
  }
  return payload;
}

}  // namespace

base::Result<void> send_datagram(int socket, MessageType type, std::string_view payload,
                                 std::span<const int> fds) {
  if (payload.size() > kMaxPayload || fds.size() >= kMaxFdsPerMessage) {
    return base::failure("send a datagram", EMSGSIZE);
  }
  std::vector<int> numbers(fds.begin(), fds.end());
  const auto length = static_cast<std::uint32_t>(payload.size());
  base::UniqueFd memory;
  if (payload.size() > kMaxInlinePayload) {
    auto made = payload_memfd(payload);
    if (!made) return tl::unexpected<base::Error>(made.error());
    memory = std::move(*made);
    numbers.insert(numbers.begin(), memory.borrow());
    payload = {};
  }
  const std::string header =
      encode_header({.length = length,
                     .type = type,
                     .version = kVersion,
                     .fd_count = static_cast<std::uint32_t>(numbers.size())});
  iovec vectors[2];
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = slice(vectors, header, payload, 0, header.size() + payload.size());
  attach_fds(message, control, numbers);
  if (send_retrying(socket, message, 0) < 0) return base::os_error("send a datagram");
  return {};
}

base::Result<std::optional<Frame>> receive_datagram(int socket) {
  // Not on the stack of a tiny init, and not cleared for every message.
  static char buffer[kHeaderSize + kMaxInlinePayload];
  iovec vector{buffer, sizeof buffer};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<Frame>();
  if (got < 0) return base::os_error("receive a datagram");
  Frame frame;
  adopt_fds(message, frame.fds);
  if (got == 0) return base::failure("receive a datagram", ECONNRESET, "closed by the other side");
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    return base::failure("receive a datagram", EMSGSIZE, "some of it was cut off");
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  auto header = decode_header(bytes);
  if (!header) return tl::unexpected<base::Error>(header.error());
  if (header->fd_count != frame.fds.size()) {
    return base::failure("receive a datagram", EBADMSG, "wrong number of descriptors");
  }
  frame.type = header->type;
  frame.payload = bytes.substr(kHeaderSize);
  if (frame.payload.size() != header->length) {
    if (!frame.payload.empty() || frame.fds.empty()) {
      return base::failure("receive a datagram", EBADMSG, "wrong length");
    }
    auto payload = read_payload(frame.fds.front().borrow(), header->length);
    if (!payload) return tl::unexpected<base::Error>(payload.error());
    frame.payload = std::move(*payload);
    frame.fds.erase(frame.fds.begin());
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace wire
