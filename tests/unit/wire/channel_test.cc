#include "wire/channel.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/child.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/messages.h"
#include "tests/support/requires.h"
#include "wire/limits.h"

using namespace wire;
using support::borrow_all;
using support::FdLeakCheck;
using support::marked_fds;
using support::names_of_fds;

namespace {

constexpr MessageType kType = MessageType::control;

std::string header_of(std::size_t length, std::size_t fd_count, std::uint16_t version = kVersion) {
  return encode_header({.length = static_cast<std::uint32_t>(length),
                        .type = kType,
                        .version = version,
                        .fd_count = static_cast<std::uint32_t>(fd_count)});
}

/// What receive() gives for a frame that must be there.
Frame take(Receiver& receiver, int socket) {
  auto frame = receiver.receive(socket);
  if (!frame) FAIL(frame.error().message());
  REQUIRE(frame->has_value());
  return std::move(**frame);
}

int error_of(const base::Result<std::optional<Frame>>& result) {
  return result ? 0 : result.error().code;
}

}  // namespace

TEST_CASE("a frame tells who has sent it, if that was one process", "[wire]") {
  const FdLeakCheck leaks;
  const std::string bytes = header_of(4, 0) + "text";
  constexpr unsigned kBoth = 3;
  for (const unsigned by_another : {0u, 1u, 2u, kBoth}) {  // bit N: half N
    CAPTURE(by_another);
    const auto pair = support::stream_pair(SOCK_NONBLOCK);
    const int on = 1;
    REQUIRE(::setsockopt(pair.ours.borrow(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    const auto send = [&](unsigned half) {
      support::send_raw(pair.theirs.borrow(), half == 0 ? bytes.substr(0, 6) : bytes.substr(6));
      return 0;
    };
    pid_t expected = by_another == 0 ? ::getpid() : 0;
    if (by_another == kBoth) {
      support::Child other([&] { return send(0) + send(1); });
      expected = other.pid();
      other.wait();
    }
    for (const unsigned half : {0u, 1u}) {
      if (by_another == kBoth) break;
      if ((by_another >> half & 1) == 0) {
        send(half);
      } else {
        support::Child([&] { return send(half); }).wait();
      }
    }
    Receiver receiver;
    CHECK(take(receiver, pair.ours.borrow()).sender == expected);
  }
  const auto without = support::stream_pair(SOCK_NONBLOCK);
  support::send_raw(without.theirs.borrow(), bytes);
  Receiver receiver;
  CHECK(take(receiver, without.ours.borrow()).sender == 0);
}

TEST_CASE("a frame arrives whole wherever it is cut", "[wire]") {
  const FdLeakCheck leaks;
  const std::string payload = "{\"verb\":\"info\"}";
  const auto fds = marked_fds(2);
  const std::string bytes = header_of(payload.size(), fds.size()) + payload;
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    CAPTURE(cut);
    const auto pair = support::stream_pair(SOCK_NONBLOCK);
    Receiver receiver;
    CHECK_FALSE(receiver.is_inside_frame());
    support::send_raw(pair.theirs.borrow(), bytes.substr(0, cut), borrow_all(fds));
    auto part = receiver.receive(pair.ours.borrow());
    REQUIRE(part);
    REQUIRE_FALSE(part->has_value());
    CHECK(receiver.is_inside_frame());
    support::send_raw(pair.theirs.borrow(), bytes.substr(cut));
    const Frame frame = take(receiver, pair.ours.borrow());
    CHECK(frame.type == kType);
    CHECK(frame.payload == payload);
    CHECK(names_of_fds(frame.fds) == names_of_fds(fds));
    CHECK_FALSE(receiver.is_inside_frame());
  }
}

TEST_CASE("a frame arrives whole byte by byte, with a descriptor on each", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const std::string payload = "payload";
  const auto fds = marked_fds(kHeaderSize + payload.size());
  const std::string bytes = header_of(payload.size(), fds.size()) + payload;
  Receiver receiver;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    const int fd = fds[i].borrow();
    support::send_raw(pair.theirs.borrow(), bytes.substr(i, 1), {&fd, 1});
    auto part = receiver.receive(pair.ours.borrow());
    REQUIRE(part);
    REQUIRE_FALSE(part->has_value());
  }
  const int last = fds.back().borrow();
  support::send_raw(pair.theirs.borrow(), bytes.substr(bytes.size() - 1), {&last, 1});
  const Frame frame = take(receiver, pair.ours.borrow());
  CHECK(frame.payload == payload);
  CHECK(names_of_fds(frame.fds) == names_of_fds(fds));
}

TEST_CASE("any number of descriptors arrives in order and close-on-exec", "[wire]") {
  const std::size_t count = GENERATE(0, 1, 2, 252, 253, 254, 506, 507, 1000);
  CAPTURE(count);
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(count);
  const std::string payload(300, 'p');
  REQUIRE(send_frame(pair.theirs.borrow(), kType, payload, borrow_all(fds)));
  Receiver receiver;
  const Frame frame = take(receiver, pair.ours.borrow());
  CHECK(frame.payload == payload);
  CHECK(names_of_fds(frame.fds) == names_of_fds(fds));
  for (const auto& fd : frame.fds) {
    REQUIRE((::fcntl(fd.borrow(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("a frame with the most descriptors and the shortest payload arrives", "[wire]") {
  // Each byte carries at most 253: the header alone must be able to carry them all.
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const base::UniqueFd one = support::marked_fd("one");
  const std::vector<int> fds(kMaxPassedFds, one.borrow());
  if (const auto sent = send_frame(pair.theirs.borrow(), kType, "", fds); !sent) {
    CHECK(sent.error().code == EMSGSIZE);
    return;
  }
  Receiver receiver;
  const Frame frame = take(receiver, pair.ours.borrow());
  CHECK(frame.fds.size() == fds.size());
}

TEST_CASE("two frames back to back keep their own descriptors", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto first = marked_fds(3, "first-");
  const auto second = marked_fds(300, "second-");
  REQUIRE(send_frame(pair.theirs.borrow(), kType, "one", borrow_all(first)));
  REQUIRE(send_frame(pair.theirs.borrow(), kType, "", borrow_all(second)));
  REQUIRE(send_frame(pair.theirs.borrow(), kType, "three"));
  Receiver receiver;
  const Frame one = take(receiver, pair.ours.borrow());
  CHECK(one.payload == "one");
  CHECK(names_of_fds(one.fds) == names_of_fds(first));
  const Frame two = take(receiver, pair.ours.borrow());
  CHECK(two.payload.empty());
  CHECK(names_of_fds(two.fds) == names_of_fds(second));
  const Frame three = take(receiver, pair.ours.borrow());
  CHECK(three.payload == "three");
  CHECK(three.fds.empty());
  const auto nothing = receiver.receive(pair.ours.borrow());
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
}

TEST_CASE("a frame of the longest payload goes through a socket that blocks", "[wire]") {
  const FdLeakCheck leaks;
  auto pair = support::stream_pair();
  std::string payload(kMaxPayload, 'x');
  payload.back() = 'y';
  const auto fds = marked_fds(254);
  support::Child sender(
      [&] { return send_frame(pair.theirs.borrow(), kType, payload, borrow_all(fds)) ? 0 : 1; });
  pair.theirs.reset();
  Receiver receiver;
  const Frame frame = take(receiver, pair.ours.borrow());
  CHECK(frame.payload == payload);
  CHECK(names_of_fds(frame.fds) == names_of_fds(fds));
  CHECK(sender.wait().exit_code() == 0);
}

TEST_CASE("send_frame refuses what is beyond the limits and sends nothing", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const std::string long_payload(kMaxPayload + 1, 'x');
  CHECK(send_frame(pair.theirs.borrow(), kType, long_payload).error().code == EMSGSIZE);
  const std::vector<int> many(kMaxPassedFds + 1, 0);
  CHECK(send_frame(pair.theirs.borrow(), kType, "", many).error().code == EMSGSIZE);
  CHECK_FALSE(support::await_readable(pair.ours.borrow(), 0));
}

TEST_CASE("send_frame reports a peer that is gone without a signal", "[wire]") {
  auto pair = support::stream_pair();
  pair.ours.reset();
  CHECK(send_frame(pair.theirs.borrow(), kType, "x").error().code == EPIPE);
}

TEST_CASE("send_frame to a full socket gives EAGAIN when it must not block", "[wire]") {
  const auto pair = support::stream_pair();
  const std::string payload(kMaxPayload, 'x');
  CHECK(send_frame(pair.theirs.borrow(), kType, payload, {}, MSG_DONTWAIT).error().code == EAGAIN);
}

TEST_CASE("a wrong number of descriptors closes them all", "[wire]") {
  const std::size_t announced = GENERATE(0, 1, 3, wire::kMaxPassedFds);
  CAPTURE(announced);
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(2);
  support::send_raw(pair.theirs.borrow(), header_of(1, announced) + "x", borrow_all(fds));
  Receiver receiver;
  const FdLeakCheck received;
  CHECK(error_of(receiver.receive(pair.ours.borrow())) == EBADMSG);
  CHECK_FALSE(receiver.is_inside_frame());
}

TEST_CASE("a frame beyond the limits or of another version closes its descriptors", "[wire]") {
  struct Row {
    std::string header;
    int code;
  };
  const auto row = GENERATE(values<Row>({
      {header_of(kMaxPayload + 1, 1), EMSGSIZE},
      {header_of(UINT32_MAX, 1), EMSGSIZE},
      {header_of(0, kMaxPassedFds + 1), EMSGSIZE},
      {header_of(0, UINT32_MAX), EMSGSIZE},
      {header_of(0, 1, 0), EPROTONOSUPPORT},
      {header_of(0, 1, 2), EPROTONOSUPPORT},
  }));
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(1);
  support::send_raw(pair.theirs.borrow(), row.header, borrow_all(fds));
  Receiver receiver;
  const FdLeakCheck received;
  CHECK(error_of(receiver.receive(pair.ours.borrow())) == row.code);
  CHECK_FALSE(receiver.is_inside_frame());
}

TEST_CASE("a peer that closes is ECONNRESET, between frames and inside one", "[wire]") {
  const FdLeakCheck leaks;
  const std::string bytes = header_of(4, 1) + "abcd";
  const std::size_t sent = GENERATE(0, 1, 12, 13, 15);
  CAPTURE(sent);
  auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(1);
  if (sent > 0) support::send_raw(pair.theirs.borrow(), bytes.substr(0, sent), borrow_all(fds));
  pair.theirs.reset();
  Receiver receiver;
  const FdLeakCheck received;
  CHECK(error_of(receiver.receive(pair.ours.borrow())) == ECONNRESET);
  CHECK_FALSE(receiver.is_inside_frame());
}

TEST_CASE("descriptors that a peer left unread are closed with the receiver", "[wire]") {
  const FdLeakCheck leaks;
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto fds = marked_fds(5);
  support::send_raw(pair.theirs.borrow(), header_of(9, 5) + "half", borrow_all(fds));
  Receiver receiver;
  const auto part = receiver.receive(pair.ours.borrow());
  REQUIRE(part);
  CHECK_FALSE(part->has_value());
}

TEST_CASE("descriptors cut off by our own limit are an error and leave none open", "[wire]") {
  const std::string text = support::text_of_child([]() -> std::string {
    const auto pair = support::stream_pair(SOCK_NONBLOCK);
    const auto fds = marked_fds(5);
    if (!send_frame(pair.theirs.borrow(), kType, "x", borrow_all(fds))) return "not sent";
    const auto before = support::list_fds();
    rlim_t end = 0;  // with two free numbers below
    for (int free = 0; free < 2; ++end) free += !before.contains(static_cast<int>(end));
    rlimit whole{};
    ::getrlimit(RLIMIT_NOFILE, &whole);
    const rlimit two_more{end, whole.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &two_more);
    Receiver receiver;
    const int code = error_of(receiver.receive(pair.ours.borrow()));
    ::setrlimit(RLIMIT_NOFILE, &whole);
    if (support::list_fds() != before) return "leaked";
    return std::to_string(code);
  });
  CHECK(text == std::to_string(EMSGSIZE));
}

TEST_CASE("a frame that trickles in more descriptors than allowed is refused", "[wire]") {
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const base::UniqueFd one = support::marked_fd("one");
  const std::vector<int> load(kMaxFdsPerMessage, one.borrow());
  Receiver receiver;
  const FdLeakCheck received;
  support::send_raw(pair.theirs.borrow(), header_of(100, 0));
  int code = 0;
  int loads = 0;
  for (; code == 0 && loads < 100; ++loads) {
    support::send_raw(pair.theirs.borrow(), "x", load);
    code = error_of(receiver.receive(pair.ours.borrow()));
  }
  CHECK(code == EMSGSIZE);
  CHECK(loads == static_cast<int>(kMaxPassedFds / kMaxFdsPerMessage) + 1);
}

TEST_CASE("after an error a receiver starts afresh", "[wire]") {
  const FdLeakCheck leaks;
  Receiver receiver;
  {
    const auto bad = support::stream_pair(SOCK_NONBLOCK);
    support::send_raw(bad.theirs.borrow(), header_of(0, 0, 9));
    CHECK(error_of(receiver.receive(bad.ours.borrow())) == EPROTONOSUPPORT);
  }
  const auto good = support::stream_pair(SOCK_NONBLOCK);
  REQUIRE(send_frame(good.theirs.borrow(), kType, "fine"));
  CHECK(take(receiver, good.ours.borrow()).payload == "fine");
}

TEST_CASE("send_message frames a message under its own type", "[wire]") {
  const auto pair = support::stream_pair(SOCK_NONBLOCK);
  const auto request = support::full_request();
  REQUIRE(send_message(pair.theirs.borrow(), request));
  Receiver receiver;
  const Frame frame = take(receiver, pair.ours.borrow());
  CHECK(frame.type == MessageType::exec_request);
  CHECK(decode<ExecRequest>(frame.payload).value() == request);
}
