#include "routerd/whois.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.h"

using routerd::only_owner;
using routerd::ProcessTable;

TEST_CASE("a socket is its maker's as long as nobody else has it", "[whois]") {
  CHECK(only_owner({.maker = 7, .holders = {7}, .closed = {}}) == 7);
  CHECK(only_owner({.maker = 7, .holders = {7, 7}, .closed = {}}) == 7);
  // Its own programs may hide what they like.
  CHECK(only_owner({.maker = 7, .holders = {7}, .closed = {7}}) == 7);
}

TEST_CASE("what does not prove an owner proves nothing", "[whois]") {
  CHECK(only_owner({.maker = 0, .holders = {7}, .closed = {}}) == 0);     // maker not known
  CHECK(only_owner({.maker = 7, .holders = {}, .closed = {}}) == 0);      // under way, or gone
  CHECK(only_owner({.maker = 7, .holders = {8}, .closed = {}}) == 0);     // given away
  CHECK(only_owner({.maker = 7, .holders = {7, 8}, .closed = {}}) == 0);  // shared
  CHECK(only_owner({.maker = 7, .holders = {7, 0}, .closed = {}}) == 0);  // with none's
  CHECK(only_owner({.maker = 7, .holders = {7}, .closed = {8}}) == 0);    // perhaps
}

TEST_CASE("the nearest ancestor among some", "[whois]") {
  const ProcessTable table({{1, 0}, {10, 1}, {11, 10}, {12, 11}, {20, 1}, {30, 31}, {31, 30}});
  CHECK(table.nearest(12, {10, 20}) == 10);
  CHECK(table.nearest(12, {10, 11}) == 11);
  CHECK(table.nearest(10, {10}) == 10);
  CHECK(table.nearest(20, {10}) == 0);
  CHECK(table.nearest(99, {10}) == 0);
  CHECK(table.nearest(30, {10}) == 0);  // a circle, as two moments of /proc can make one
}

TEST_CASE("this process, and what it has open", "[whois]") {
  const auto table = ProcessTable::read();
  CHECK(table.parent_of(::getpid()) == ::getppid());
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const base::UniqueFd one(ends[0]);
  const base::UniqueFd other(ends[1]);
  struct stat info {};
  REQUIRE(::fstat(one.borrow(), &info) == 0);
  const auto held = routerd::sockets_held_by(::getpid(), {info.st_ino, 1});
  CHECK(held.error == 0);
  CHECK(held.inodes == std::set<ino_t>{info.st_ino});
  CHECK(routerd::sockets_held_by(4'000'000, {info.st_ino}).error == ENOENT);
}
