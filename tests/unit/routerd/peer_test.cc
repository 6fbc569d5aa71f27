#include "routerd/peer.h"

#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"
#include "wire/requester.h"

namespace {

/// The peer of a child that connects after `change`.
routerd::Peer peer_after(void (*change)(), pid_t& pid) {
  const support::TempDir folder;
  const auto listener = support::listen_at(folder / "s");
  support::Child client([&] {
    change();
    const auto connected = wire::connect_to(folder / "s");
    if (!connected) return 1;
    char byte = 0;
    return ::recv(connected->borrow(), &byte, 1, 0) == 0 ? 0 : 2;
  });
  pid = client.pid();
  if (!support::await_readable(listener.borrow())) throw std::runtime_error("no connection");
  base::UniqueFd accepted(::accept4(listener.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  auto peer = support::value_of(routerd::peer_of(accepted.borrow()));
  accepted.reset();
  CHECK(client.wait().exit_code() == 0);
  return peer;
}

}  // namespace

TEST_CASE("a peer is told by pid, uid, gid and groups", "[routerd][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  pid_t pid = -1;
  const auto peer = peer_after(
      [] {
        const gid_t groups[] = {7, 70'000};
        if (::setgroups(2, groups) != 0 || ::setresgid(1001, 1001, 1001) != 0 ||
            ::setresuid(1000, 1000, 1000) != 0) {
          ::_exit(9);
        }
      },
      pid);
  CHECK(peer.pid == pid);
  CHECK(peer.credentials.uid == 1000);
  CHECK(peer.credentials.gid == 1001);
  CHECK(peer.credentials.groups == std::vector<std::uint32_t>{7, 70'000});
  CHECK(peer.is_in_group(7));
  CHECK(peer.is_in_group(1001));
  CHECK_FALSE(peer.is_in_group(8));
  CHECK_FALSE(peer.is_in_group(0));
}

TEST_CASE("a peer may have no groups or thousands", "[routerd][root]") {
  if (support::lacks_root()) return;
  pid_t pid = -1;
  CHECK(peer_after([] { (void)::setgroups(0, nullptr); }, pid).credentials.groups.empty());
  const auto peer = peer_after(
      [] {
        std::vector<gid_t> groups;
        for (gid_t gid = 1; gid <= 3000; ++gid) groups.push_back(gid);
        if (::setgroups(groups.size(), groups.data()) != 0) ::_exit(9);
      },
      pid);
  CHECK(peer.credentials.groups.size() == 3000);
  CHECK(peer.is_in_group(3000));
}

TEST_CASE("what is no UNIX socket has no peer", "[routerd]") {
  const auto pipe = support::make_pipe();
  CHECK(routerd::peer_of(pipe.read.borrow()).error().code == ENOTSOCK);
  CHECK(routerd::peer_of(-1).error().code == EBADF);
}
