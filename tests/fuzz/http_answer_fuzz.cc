// Any bytes as an answer of the HTTP API, as the command reads it: what it makes of them does not
// depend on how they arrive, it waits for nothing that it says is there, and it ends. The first
// byte says how many 16ths of the rest come at first.

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ctl/http.h"

namespace {

constexpr std::size_t kMost = 64u << 10;  // fits the socket at once

struct Read {
  int error = 0;
  unsigned status = 0;
  std::string body;
  bool operator==(const Read&) const = default;
};

/// The peer of a connection that answers whatever it is asked.
class Peer {
 public:
  Peer() {
    int ends[2];
    const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    if (::socketpair(AF_UNIX, type, 0, ends) != 0) std::abort();
    ours_.reset(ends[0]);
    theirs_.reset(ends[1]);
  }
  base::UniqueFd take() { return std::move(theirs_); }
  void send(std::string_view bytes) {
    if (bytes.empty()) return;
    const ssize_t sent = ::send(ours_.borrow(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  void end() { ::shutdown(ours_.borrow(), SHUT_WR); }

 private:
  base::UniqueFd ours_;
  base::UniqueFd theirs_;
};

/// Adds the next part; false at the end.
bool read_part(ctl::HttpAnswer& answer, Read& read) {
  const auto part = answer.read_some();
  if (!part) read.error = part.error().code;
  if (!part || part->empty()) return false;
  read.body += *part;
  return true;
}

void check(const ctl::HttpAnswer& answer, const Read& read, std::size_t size) {
  if (read.body.size() > size || read.error == EAGAIN) std::abort();
  const bool is_counted = answer.header("transfer-encoding").empty();
  const std::string length = answer.header("content-length");
  if (read.error != 0 || !is_counted || length.empty()) return;
  const bool has_body = read.status != 204 && read.status != 304;
  if (read.body.size() != (has_body ? std::stoull(length) : 0)) std::abort();
}

Read read_whole(std::string_view bytes) {
  Peer peer;
  peer.send(bytes);
  peer.end();
  auto answer = ctl::HttpAnswer::ask(peer.take(), {});
  if (!answer) return {answer.error().code, 0, {}};
  Read read{0, answer->status(), {}};
  while (read_part(*answer, read)) {
  }
  check(*answer, read, bytes.size());
  return read;
}

/// False: the head was not among what came at first.
bool read_in_two(std::string_view bytes, std::size_t first, Read& read) {
  Peer peer;
  peer.send(bytes.substr(0, first));
  auto answer = ctl::HttpAnswer::ask(peer.take(), {});
  if (!answer) {
    read.error = answer.error().code;
    return read.error != EAGAIN;
  }
  read.status = answer->status();
  while (answer->has_more()) {
    if (!read_part(*answer, read)) {
      if (read.error == EAGAIN) std::abort();  // it said that there is something
      return true;
    }
  }
  peer.send(bytes.substr(first));
  peer.end();
  while (read_part(*answer, read)) {
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > kMost) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = read_whole(bytes);
  Read in_two;
  const std::size_t first = bytes.size() * (data[0] % 16) / 16;
  if (read_in_two(bytes, first, in_two) && in_two != whole) std::abort();
  return 0;
}
