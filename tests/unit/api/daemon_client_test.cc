#include "api/daemon_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "tests/support/fds.h"
#include "tests/support/temp_dir.h"
#include "wire/channel.h"

// The daemon closes a connection that says nothing for some seconds, and an API that nobody uses
// would end with it.
TEST_CASE("the connection for jobs speaks before there are any", "[api]") {
  const support::TempDir folder;
  const auto listener = support::listen_at(folder / "control.sock");
  boost::asio::io_context io;
  auto client = api::DaemonClient::connect(io, folder / "control.sock", [] {});
  REQUIRE(client);
  // That for questions comes first.
  const base::UniqueFd questions(::accept4(listener.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  const base::UniqueFd jobs(::accept4(listener.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  pollfd readable{jobs.borrow(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, support::kDeadlineMs) == 1);
  wire::Receiver receiver;
  const auto frame = receiver.receive(jobs.borrow());
  REQUIRE(frame);
  CHECK((*frame)->type == wire::MessageType::control);
}
