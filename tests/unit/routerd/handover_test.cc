#include "routerd/handover.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "tests/support/context_client.h"
#include "tests/support/event_loop.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "wire/limits.h"

using routerd::Handover;
using support::names_of_fds;

namespace {

/// routerd's end with an event loop, and the init's end in our hands.
class Channel {
 public:
  Channel() = default;

  Handover& handover() { return handover_; }
  int init() const { return pair_.theirs.borrow(); }
  void close_init() { pair_.theirs.reset(); }
  std::vector<wire::Frame>& received() { return received_; }
  int closed() const { return closed_; }
  template <class Done>
  void run_until(Done done) {
    loop_.run_until(done);
  }
  wire::Frame next_at_init() {
    if (!support::await_readable(init())) FAIL("nothing for the init");
    auto frame = wire::receive_datagram(init());
    if (!frame || !*frame) FAIL("no frame for the init");
    return std::move(**frame);
  }

 private:
  support::SocketPair pair_ = support::seqpacket_pair(SOCK_NONBLOCK);
  support::EventLoop loop_;
  std::vector<wire::Frame> received_;
  int closed_ = 0;
  Handover handover_{loop_.io(), pair_.ours.borrow(),
                     [this](wire::Frame frame) { received_.push_back(std::move(frame)); },
                     [this] { ++closed_; }};
};

wire::Spawn spawn_of(std::uint64_t job) {
  wire::Spawn spawn;
  spawn.job = job;
  spawn.request.path = "/bin/true";
  return spawn;
}

}  // namespace

TEST_CASE("a job's descriptors go ahead, and its connection with it", "[routerd]") {
  const support::FdLeakCheck leaks;
  const std::size_t count = GENERATE(0, 1, 251, 252, 253, 503, 504, 1000);
  CAPTURE(count);
  Channel channel;
  auto connection = support::marked_fd("connection");
  auto fds = support::marked_fds(count);
  auto expected = names_of_fds(fds);
  expected.push_back(support::name_of_mark("connection"));
  REQUIRE(channel.handover().give(spawn_of(17), connection, std::move(fds)));
  CHECK_FALSE(connection);

  std::vector<std::string> arrived;
  for (;;) {
    const auto frame = channel.next_at_init();
    for (const auto& name : names_of_fds(frame.fds)) arrived.push_back(name);
    if (frame.type == wire::MessageType::spawn) {
      CHECK(wire::decode<wire::Spawn>(frame.payload).value() == spawn_of(17));
      CHECK(frame.fds.size() == 1);  // so that the others are closed here when the job arrives
      break;
    }
    REQUIRE(frame.type == wire::MessageType::spawn_fds);
    CHECK(wire::decode<wire::SpawnFds>(frame.payload)->job == 17);
  }
  CHECK(arrived == expected);
}

TEST_CASE("a request too long for a datagram is handed over with all its descriptors",
          "[routerd]") {
  const support::FdLeakCheck leaks;
  Channel channel;
  auto connection = support::marked_fd("connection");
  auto spawn = spawn_of(17);
  spawn.request.argv.add(std::string(100'000, 'x'));
  REQUIRE(channel.handover().give(spawn, connection, support::marked_fds(251)));
  CHECK(channel.next_at_init().fds.size() == 251);
  const auto frame = channel.next_at_init();
  CHECK(wire::decode<wire::Spawn>(frame.payload).value() == spawn);
  CHECK(frame.fds.size() == 1);
}

TEST_CASE("what the init cannot take yet waits in order", "[routerd]") {
  const support::FdLeakCheck leaks;
  Channel channel;
  auto spawn = spawn_of(0);
  spawn.request.argv.add(std::string(40'000, 'x'));
  constexpr std::uint64_t kCount = 60;  // far beyond the default socket buffer
  for (std::uint64_t i = 0; i < kCount; ++i) {
    spawn.job = i;
    auto connection = support::marked_fd("connection-" + std::to_string(i));
    REQUIRE(channel.handover().give(spawn, connection, {}));
  }
  std::vector<wire::Frame> arrived;
  channel.run_until([&] {
    auto frame = wire::receive_datagram(channel.init());
    if (frame && *frame) arrived.push_back(std::move(**frame));
    return arrived.size() == kCount;
  });
  for (std::uint64_t i = 0; i < kCount; ++i) {
    REQUIRE(wire::decode<wire::Spawn>(arrived[i].payload)->job == i);
    REQUIRE(names_of_fds(arrived[i].fds) ==
            std::vector<std::string>{support::name_of_mark("connection-" + std::to_string(i))});
  }
}

TEST_CASE("a full queue gives the connection back", "[routerd]") {
  const support::FdLeakCheck leaks;
  Channel channel;
  base::Result<void> given;
  for (int i = 0; given && i < 100'000; ++i) given = channel.handover().tell(wire::ListJobs{1});
  REQUIRE_FALSE(given);
  CHECK(given.error().code == EAGAIN);
  auto connection = support::marked_fd("connection");
  CHECK(channel.handover().give(spawn_of(1), connection, support::marked_fds(3)).error().code ==
        EAGAIN);
  CHECK(connection);
}

TEST_CASE("answers of the init arrive one by one", "[routerd]") {
  Channel channel;
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(wire::send_datagram(channel.init(), wire::MessageType::job_list,
                                wire::encode(wire::JobList{i, {}})));
  }
  channel.run_until([&] { return channel.received().size() == 3; });
  CHECK(wire::decode<wire::JobList>(channel.received()[2].payload)->serial == 2);
  CHECK(channel.closed() == 0);
}

TEST_CASE("an init that is gone is told once, and takes no jobs", "[routerd]") {
  const support::FdLeakCheck leaks;
  Channel channel;
  channel.close_init();
  channel.run_until([&] { return channel.closed() > 0; });
  CHECK(channel.closed() == 1);
  auto connection = support::marked_fd("connection");
  CHECK_FALSE(channel.handover().give(spawn_of(1), connection, {}));
  CHECK(connection);
}
