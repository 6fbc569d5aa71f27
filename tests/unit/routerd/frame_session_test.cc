// FrameSession and Listener: what happens on a daemon's sockets before anybody decides anything.

#include "routerd/frame_session.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "routerd/listener.h"
#include "tests/support/context_client.h"
#include "tests/support/event_loop.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/temp_dir.h"
#include "wire/limits.h"
#include "wire/requester.h"

using routerd::FrameSession;
using routerd::Listener;
using Loop = support::EventLoop;

namespace {

/// A session that notes its frames.
struct Noted {
  explicit Noted(Loop& loop, bool is_one_frame_only = false) {
    auto pair = support::stream_pair(SOCK_NONBLOCK);
    peer = std::move(pair.ours);
    session =
        std::make_shared<FrameSession>(loop.io(), std::move(pair.theirs),
                                       [this, is_one_frame_only](FrameSession&, wire::Frame frame) {
                                         payloads.push_back(frame.payload);
                                         return !is_one_frame_only;
                                       });
    session->on_close([this] { ++closed; });
  }
  void send(const std::string& payload) {
    REQUIRE(wire::send_frame(peer.borrow(), wire::MessageType::control, payload));
  }

  base::UniqueFd peer;
  std::shared_ptr<FrameSession> session;
  std::vector<std::string> payloads;
  int closed = 0;
};

}  // namespace

TEST_CASE("a session takes what is there at once and what comes later", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  Noted noted(loop);
  noted.send("one");
  noted.send("two");
  CHECK(noted.session->is_waiting_for_first());
  noted.session->start();
  CHECK(noted.payloads == std::vector<std::string>{"one", "two"});
  CHECK_FALSE(noted.session->is_waiting_for_first());
  noted.send("three");
  loop.run_until([&] { return noted.payloads.size() == 3; });
  CHECK(noted.closed == 0);
}

TEST_CASE("a session ends with its peer, and says so once", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  Noted noted(loop);
  noted.session->start();
  noted.peer.reset();
  loop.run_until([&] { return noted.closed > 0; });
  noted.session->close();
  noted.session->send(wire::MessageType::event, "nobody hears");
  CHECK(noted.closed == 1);
}

TEST_CASE("everybody who asked is told of a session's end", "[routerd]") {
  Loop loop;
  Noted noted(loop);
  std::string told;
  noted.session->on_close([&] { told += "a"; });
  noted.session->on_close([&] { told += "b"; });
  noted.session->close();
  noted.session->close();
  CHECK(noted.closed == 1);
  CHECK(told == "ab");
}

TEST_CASE("a peer that breaks the protocol is disconnected", "[routerd]") {
  Loop loop;
  Noted noted(loop);
  support::send_raw(noted.peer.borrow(), "GET / HTTP/1.1\r\n\r\n");
  noted.session->start();
  CHECK(noted.closed == 1);
  // Unread bytes make it a reset; either way it is over.
  char byte = 0;
  REQUIRE(support::await_readable(noted.peer.borrow()));
  CHECK(::recv(noted.peer.borrow(), &byte, 1, 0) <= 0);
}

TEST_CASE("a released session reads no more, and tells that it is over", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  Noted noted(loop, true);
  noted.send("one");
  noted.send("two");
  noted.session->start();
  CHECK(noted.payloads == std::vector<std::string>{"one"});
  auto socket = noted.session->release();
  REQUIRE(socket);
  CHECK(noted.closed == 1);
  noted.session.reset();
  CHECK(noted.closed == 1);
  wire::Receiver receiver;
  const auto frame = receiver.receive(socket.borrow());
  REQUIRE((frame && *frame));
  CHECK((*frame)->payload == "two");
}

TEST_CASE("frames are sent in order, however slowly the peer reads", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  Noted noted(loop);
  noted.session->start();
  constexpr int kCount = 60;
  for (int i = 0; i < kCount; ++i) {
    noted.session->send(wire::MessageType::event, std::string(100'000, static_cast<char>('0' + i)));
  }
  wire::Receiver receiver;
  int received = 0;
  loop.run_until([&] {
    auto frame = receiver.receive(noted.peer.borrow());
    if (!frame) FAIL(frame.error().message());
    if (*frame) {
      REQUIRE((*frame)->payload == std::string(100'000, static_cast<char>('0' + received)));
      ++received;
    }
    return received == kCount;
  });
  CHECK(noted.closed == 0);
}

TEST_CASE("a peer that reads nothing is disconnected at last", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  Noted noted(loop);
  noted.session->start();
  const std::string payload(1 << 20, 'x');
  int sent = 0;
  while (noted.closed == 0 && sent < 100) {
    noted.session->send(wire::MessageType::event, payload);
    ++sent;
  }
  CHECK(noted.closed == 1);
  CHECK(sent < 12);
  loop.poll();
}

TEST_CASE("a listener accepts, with the mode it was given, and removes its socket", "[routerd]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  Loop loop;
  std::vector<std::string> payloads;
  {
    // A stale socket is in the way.
    { const auto stale = support::listen_at(folder / "s"); }
    auto listener =
        support::value_of(Listener::open(loop.io(), folder / "s", 0640, [&](base::UniqueFd socket) {
          return std::make_shared<FrameSession>(loop.io(), std::move(socket),
                                                [&](FrameSession&, wire::Frame frame) {
                                                  payloads.push_back(frame.payload);
                                                  return true;
                                                });
        }));
    struct stat info {};
    REQUIRE(::stat((folder / "s").c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0640);
    const auto one = support::value_of(wire::connect_to(folder / "s"));
    const auto two = support::value_of(wire::connect_to(folder / "s"));
    REQUIRE(wire::send_frame(two.borrow(), wire::MessageType::control, "two"));
    REQUIRE(wire::send_frame(one.borrow(), wire::MessageType::control, "one"));
    loop.run_until([&] { return payloads.size() == 2; });
  }
  loop.poll();
  CHECK_FALSE(std::filesystem::exists(folder / "s"));
}

TEST_CASE("a listener cannot be opened where no socket can be", "[routerd]") {
  const support::FdLeakCheck leaks;
  Loop loop;
  const auto open_at = [&](const std::string& path) {
    const auto listener = Listener::open(loop.io(), path, 0600, nullptr);
    return listener ? 0 : listener.error().code;
  };
  CHECK(open_at("/" + std::string(107, 'x')) == ENAMETOOLONG);
  CHECK(open_at("/does/not/exist/s") == ENOENT);
}

TEST_CASE("of too many silent connections the oldest are closed", "[routerd]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  Loop loop;
  int accepted = 0;
  {
    auto listener =
        support::value_of(Listener::open(loop.io(), folder / "s", 0600, [&](base::UniqueFd socket) {
          ++accepted;
          return std::make_shared<FrameSession>(loop.io(), std::move(socket),
                                                [](FrameSession&, wire::Frame) { return true; });
        }));
    std::vector<base::UniqueFd> clients;
    const auto connect = [&] {
      clients.push_back(support::value_of(wire::connect_to(folder / "s")));
      loop.run_until([&] { return accepted == static_cast<int>(clients.size()); });
    };
    for (std::size_t i = 0; i < wire::kMaxPendingConnections; ++i) connect();
    CHECK_FALSE(support::await_readable(clients[0].borrow(), 0));
    connect();
    connect();
    support::await_end_of_file(clients[0].borrow());
    support::await_end_of_file(clients[1].borrow());
    CHECK_FALSE(support::await_readable(clients[2].borrow(), 0));
  }
  loop.poll();
}

TEST_CASE("a connection the owner does not want is closed", "[routerd]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  Loop loop;
  auto listener = support::value_of(
      Listener::open(loop.io(), folder / "s", 0600, [](base::UniqueFd) { return nullptr; }));
  const auto client = support::value_of(wire::connect_to(folder / "s"));
  loop.run_until([&] { return support::await_readable(client.borrow(), 0); });
  support::await_end_of_file(client.borrow());
}
