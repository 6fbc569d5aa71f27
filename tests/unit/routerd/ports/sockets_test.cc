#include "routerd/ports/sockets.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

namespace ip = boost::asio::ip;
using ip::tcp;
using routerd::ports::find_connected;
using routerd::ports::is_local;
using routerd::ports::listening;

namespace {

struct Connected {
  boost::asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(ip::address_v4::loopback(), 0)};
  tcp::socket client{io};
  tcp::socket server{io};

  Connected() {
    client.connect(acceptor.local_endpoint());
    server = acceptor.accept();
  }
};

ino_t inode_of(int fd) {
  struct stat info {};
  REQUIRE(::fstat(fd, &info) == 0);
  return info.st_ino;
}

}  // namespace

TEST_CASE("each end of a connection is found by its four numbers", "[ports][sockets]") {
  Connected both;
  const auto here = both.client.local_endpoint();
  const auto there = both.acceptor.local_endpoint();
  const auto client = find_connected(here, there);
  REQUIRE(client);
  REQUIRE(*client);
  CHECK((*client)->inode == inode_of(both.client.native_handle()));
  CHECK((*client)->uid == ::geteuid());
  CHECK((*client)->local == here);
  const auto server = find_connected(there, here);
  REQUIRE(server);
  REQUIRE(*server);
  CHECK((*server)->inode == inode_of(both.server.native_handle()));
  // As a dual-stack listener tells IPv4.
  const auto mapped = [](const tcp::endpoint& endpoint) {
    return tcp::endpoint(ip::make_address_v6(ip::v4_mapped, endpoint.address().to_v4()),
                         endpoint.port());
  };
  const auto as_v6 = find_connected(mapped(here), mapped(there));
  REQUIRE(as_v6);
  REQUIRE(*as_v6);
  CHECK((*as_v6)->inode == (*client)->inode);
}

TEST_CASE("a connection that is none, or has ended, is not found", "[ports][sockets]") {
  Connected both;
  const auto here = both.client.local_endpoint();
  const auto there = both.acceptor.local_endpoint();
  const auto other = find_connected({here.address(), static_cast<std::uint16_t>(1)}, there);
  REQUIRE(other);
  CHECK_FALSE(*other);
  // Not the listener, which the kernel would offer.
  const auto listener = find_connected(there, {here.address(), static_cast<std::uint16_t>(1)});
  REQUIRE(listener);
  CHECK_FALSE(*listener);
  both.client.set_option(boost::asio::socket_base::linger(true, 0));
  both.client.close();
  const auto reset = find_connected(here, there);
  REQUIRE(reset);
  CHECK_FALSE(*reset);
}

TEST_CASE("what listens is listed", "[ports][sockets]") {
  Connected both;
  const auto all = listening();
  REQUIRE(all);
  const auto found = std::ranges::find_if(
      *all, [&both](const auto& socket) { return socket.local == both.acceptor.local_endpoint(); });
  REQUIRE(found != all->end());
  CHECK(found->inode == inode_of(both.acceptor.native_handle()));
  CHECK(std::ranges::none_of(*all, [&both](const auto& socket) {
    return socket.local.port() == both.client.local_endpoint().port();
  }));
}

TEST_CASE("which addresses are this machine's", "[ports][sockets]") {
  CHECK(is_local(ip::make_address("127.0.0.1")));
  CHECK(is_local(ip::make_address("127.9.9.9")));
  CHECK(is_local(ip::make_address("::ffff:127.0.0.1")));
  CHECK_FALSE(is_local(ip::make_address("192.0.2.1")));  // RFC 5737
  CHECK_FALSE(is_local(ip::make_address("::ffff:192.0.2.1")));
}
