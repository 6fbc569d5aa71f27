// The SEQPACKET half of wire/channel.h: one frame, one datagram.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/child.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "wire/channel.h"
#include "wire/limits.h"

using namespace wire;
using support::borrow_all;
using support::FdLeakCheck;
using support::marked_fds;
using support::names_of_fds;

namespace {

constexpr MessageType kType = MessageType::spawn;

std::string header_of(std::size_t length, std::size_t fd_count) {
  return encode_header({.length = static_cast<std::uint32_t>(length),
                        .type = kType,
                        .version = kVersion,
                        .fd_count = static_cast<std::uint32_t>(fd_count)});
}

int error_of(const base::Result<std::optional<Frame>>& result) {
  return result ? 0 : result.error().code;
}

base::UniqueFd memfd_with(const std::string& bytes) {
  auto fd = support::marked_fd("payload");
  REQUIRE(::write(fd.borrow(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

}  // namespace

TEST_CASE("a datagram arrives with its payload and descriptors", "[wire]") {
  const std::size_t size = GENERATE(std::size_t{0}, std::size_t{1}, kMaxInlinePayload,
                                    kMaxInlinePayload + 1, std::size_t{1} << 20, kMaxPayload);
  const std::size_t count = GENERATE(0, 1, 252);
  CAPTURE(size, count);
  const FdLeakCheck leaks;
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  std::string payload(size, 'x');
  if (size > 0) payload.back() = 'y';
  const auto fds = marked_fds(count);
  REQUIRE(send_datagram(pair.theirs.borrow(), kType, payload, borrow_all(fds)));
  auto frame = receive_datagram(pair.ours.borrow());
  REQUIRE(frame);
  REQUIRE(frame->has_value());
  CHECK((*frame)->type == kType);
  CHECK((*frame)->payload == payload);
  CHECK(names_of_fds((*frame)->fds) == names_of_fds(fds));
  for (const auto& fd : (*frame)->fds) {
    REQUIRE((::fcntl(fd.borrow(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("datagrams keep their borders and their descriptors", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const auto first = marked_fds(2, "first-");
  const auto second = marked_fds(1, "second-");
  REQUIRE(send_datagram(pair.theirs.borrow(), kType, "one", borrow_all(first)));
  REQUIRE(send_datagram(pair.theirs.borrow(), kType, "two", borrow_all(second)));
  auto one = receive_datagram(pair.ours.borrow());
  auto two = receive_datagram(pair.ours.borrow());
  REQUIRE((one && *one && two && *two));
  CHECK((*one)->payload == "one");
  CHECK(names_of_fds((*one)->fds) == names_of_fds(first));
  CHECK((*two)->payload == "two");
  CHECK(names_of_fds((*two)->fds) == names_of_fds(second));
}

TEST_CASE("an empty non-blocking socket gives nothing, a closed one ECONNRESET", "[wire]") {
  auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  auto nothing = receive_datagram(pair.ours.borrow());
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
  pair.theirs.reset();
  CHECK(error_of(receive_datagram(pair.ours.borrow())) == ECONNRESET);
}

TEST_CASE("what is beyond the limits of a datagram is not sent", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const std::string long_payload(kMaxPayload + 1, 'x');
  CHECK(send_datagram(pair.theirs.borrow(), kType, long_payload).error().code == EMSGSIZE);
  const std::vector<int> many(kMaxFdsPerMessage, 0);
  CHECK(send_datagram(pair.theirs.borrow(), kType, "", many).error().code == EMSGSIZE);
  CHECK_FALSE(support::await_readable(pair.ours.borrow(), 0));
}

TEST_CASE("a full socket gives EAGAIN, and what was sent before arrives whole", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const std::string payload(kMaxInlinePayload, 'x');
  int sent = 0;
  base::Result<void> result;
  while ((result = send_datagram(pair.theirs.borrow(), kType, payload))) {
    REQUIRE(++sent < 10'000);
  }
  CHECK(result.error().code == EAGAIN);
  CHECK(sent > 0);
  for (int i = 0; i < sent; ++i) {
    auto frame = receive_datagram(pair.ours.borrow());
    REQUIRE((frame && *frame));
    REQUIRE((*frame)->payload == payload);
  }
  CHECK(send_datagram(pair.theirs.borrow(), kType, payload));
}

TEST_CASE("a datagram that is cut off is refused with its descriptors closed", "[wire]") {
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(1);
  const std::string payload(kMaxInlinePayload + 1, 'x');
  support::send_raw(pair.theirs.borrow(), header_of(payload.size(), 1) + payload, borrow_all(fds));
  const FdLeakCheck received;
  CHECK(error_of(receive_datagram(pair.ours.borrow())) == EMSGSIZE);
}

TEST_CASE("a datagram that lies about its length or descriptors is refused", "[wire]") {
  struct Row {
    std::string bytes;
    std::size_t fds;
    int code;
  };
  const auto row = GENERATE(values<Row>({
      {"", 0, ECONNRESET},  // an empty datagram looks like the end
      {"short", 1, EBADMSG},
      {header_of(0, 0).substr(0, 11), 1, EBADMSG},
      {header_of(1, 1) + "xy", 1, EBADMSG},
      {header_of(3, 1) + "xy", 1, EBADMSG},
      {header_of(2, 0) + "xy", 1, EBADMSG},
      {header_of(2, 2) + "xy", 1, EBADMSG},
      {header_of(2, 0), 0, EBADMSG},  // a payload elsewhere, but no descriptor
      {header_of(kMaxPayload + 1, 1), 1, EMSGSIZE},
  }));
  CAPTURE(row.bytes.size(), row.fds);
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(row.fds);
  support::send_raw(pair.theirs.borrow(), row.bytes, borrow_all(fds));
  const FdLeakCheck received;
  CHECK(error_of(receive_datagram(pair.ours.borrow())) == row.code);
}

TEST_CASE("a memfd shorter than announced is refused, a longer one is cut", "[wire]") {
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const auto memory = memfd_with("12345");
  const int fd = memory.borrow();
  const FdLeakCheck received;
  support::send_raw(pair.theirs.borrow(), header_of(6, 1), {&fd, 1});
  CHECK(error_of(receive_datagram(pair.ours.borrow())) == EBADMSG);
  support::send_raw(pair.theirs.borrow(), header_of(4, 1), {&fd, 1});
  auto frame = receive_datagram(pair.ours.borrow());
  REQUIRE((frame && *frame));
  CHECK((*frame)->payload == "1234");
  CHECK((*frame)->fds.empty());
}

TEST_CASE("a payload descriptor that cannot be read from is refused", "[wire]") {
  const auto pair = support::seqpacket_pair(SOCK_NONBLOCK);
  const auto pipe = support::make_pipe();
  const int fd = pipe.read.borrow();
  const FdLeakCheck received;
  support::send_raw(pair.theirs.borrow(), header_of(6, 1), {&fd, 1});
  CHECK(error_of(receive_datagram(pair.ours.borrow())) == ESPIPE);
}
