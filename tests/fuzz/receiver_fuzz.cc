// A peer that cuts, mixes and breaks frames with descriptors on them: every frame that comes out is
// whole, and in the end no descriptor is left. The input is a list of steps: a byte that says what,
// a byte that says how long, then that many bytes.

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "wire/channel.h"
#include "wire/limits.h"

namespace {

int count_fds() {
  DIR* folder = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

void send_chunk(int socket, std::string_view bytes, const std::vector<int>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))]{};
  iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void check(const wire::Frame& frame) {
  if (frame.payload.size() > wire::kMaxPayload || frame.fds.size() > wire::kMaxPassedFds)
    std::abort();
  for (const auto& fd : frame.fds) {
    if ((::fcntl(fd.borrow(), F_GETFD) & FD_CLOEXEC) == 0) std::abort();
  }
}

/// False when the receiver has given the connection up.
bool receive_all(wire::Receiver& receiver, int socket) {
  for (;;) {
    const auto frame = receiver.receive(socket);
    if (!frame) {
      if (receiver.is_inside_frame() || frame.error().code == 0) std::abort();
      return false;
    }
    if (!*frame) return true;
    check(**frame);
  }
}

void play(std::string_view steps) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  base::UniqueFd peer(ends[0]);
  const base::UniqueFd ours(ends[1]);
  wire::Receiver receiver;
  while (steps.size() > 2) {
    const auto what = static_cast<unsigned char>(steps[0]);
    const auto length = static_cast<unsigned char>(steps[1]);
    const auto bytes = steps.substr(2, length);
    steps.remove_prefix(2 + bytes.size());
    const std::vector<int> fds(what & 7, ours.borrow());
    if ((what & 0x80) != 0) {
      (void)wire::send_frame(peer.borrow(), static_cast<wire::MessageType>(length), bytes, fds,
                             MSG_DONTWAIT);
    } else if (!bytes.empty()) {
      send_chunk(peer.borrow(), bytes, fds);
    }
    // Sometimes several steps arrive at once.
    if ((what & 0x40) == 0 && !receive_all(receiver, ours.borrow())) return;
  }
  peer.reset();
  if (receive_all(receiver, ours.borrow())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int before = count_fds();
  play({reinterpret_cast<const char*>(data), size});
  if (count_fds() != before) std::abort();
  return 0;
}
