#include "tests/support/fds.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/file.h"

namespace support {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

SocketPair make_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

}  // namespace

SocketPair stream_pair(int flags) { return make_pair(SOCK_STREAM | flags); }
SocketPair seqpacket_pair(int flags) { return make_pair(SOCK_SEQPACKET | flags); }

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

base::UniqueFd listen_at(const std::string& path, bool is_listening) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(socket.borrow(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0777) != 0 || (is_listening && ::listen(socket.borrow(), 16) != 0)) {
    fail("listen on " + path);
  }
  return socket;
}

base::UniqueFd marked_fd(const std::string& mark) {
  base::UniqueFd fd(::memfd_create(mark.c_str(), MFD_CLOEXEC));
  if (!fd) fail("memfd_create");
  return fd;
}

std::vector<base::UniqueFd> marked_fds(std::size_t count, const std::string& prefix) {
  std::vector<base::UniqueFd> fds;
  for (std::size_t i = 0; i < count; ++i) fds.push_back(marked_fd(prefix + std::to_string(i)));
  return fds;
}

std::string name_of_mark(const std::string& mark) { return "/memfd:" + mark + " (deleted)"; }

std::string name_of_fd(int fd) {
  return base::read_link("/proc/self/fd/" + std::to_string(fd)).value_or("");
}

std::vector<std::string> names_of_fds(const std::vector<base::UniqueFd>& fds) {
  std::vector<std::string> names;
  for (const auto& fd : fds) names.push_back(name_of_fd(fd.borrow()));
  return names;
}

std::vector<int> borrow_all(const std::vector<base::UniqueFd>& fds) {
  std::vector<int> numbers;
  for (const auto& fd : fds) numbers.push_back(fd.borrow());
  return numbers;
}

void send_raw(int socket, std::string_view bytes, std::span<const int> fds) {
  std::string control(CMSG_SPACE(fds.size_bytes()), '\0');
  iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) fail("sendmsg");
}

bool await_readable(int fd, int timeout_ms) {
  pollfd watched{fd, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&watched, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

namespace {

ssize_t read_in_time(int fd, char* buffer, std::size_t size) {
  if (!await_readable(fd)) throw std::runtime_error("nothing to read in time");
  const ssize_t n = ::read(fd, buffer, size);
  if (n < 0) fail("read");
  return n;
}

}  // namespace

char read_byte(int fd) {
  char byte = 0;
  if (read_in_time(fd, &byte, 1) != 1) throw std::runtime_error("end of file in place of a byte");
  return byte;
}

void await_end_of_file(int fd) {
  char byte = 0;
  if (read_in_time(fd, &byte, 1) != 0) throw std::runtime_error("a byte in place of end of file");
}

std::string read_to_end(int fd) {
  std::string text;
  char block[16384];
  for (;;) {
    const ssize_t n = read_in_time(fd, block, sizeof block);
    if (n == 0) return text;
    text.append(block, static_cast<std::size_t>(n));
  }
}

}  // namespace support
