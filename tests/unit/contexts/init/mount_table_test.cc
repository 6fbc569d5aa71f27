#include "contexts/init/mount_table.h"

#include <algorithm>
#include <catch2/catch.hpp>

using contexts::init::parse_mounts;

TEST_CASE("a line of mountinfo", "[init]") {
  const auto mounts = parse_mounts(
      "36 35 98:0 /mnt1 /mnt/two\\040words rw,noatime master:1 propagate_from:2 - ext3 /dev/root "
      "rw\n40 36 0:5 / /proc rw - proc none rw\n");
  REQUIRE(mounts.size() == 2);
  CHECK(mounts[0].id == "36");
  CHECK(mounts[0].parent == "35");
  CHECK(mounts[0].device == "98:0");
  CHECK(mounts[0].point == "/mnt/two words");
  CHECK(mounts[0].type == "ext3");
  CHECK(mounts[1].point == "/proc");
  CHECK(mounts[1].type == "proc");
}

TEST_CASE("a point may have any bytes", "[init]") {
  CHECK(parse_mounts("1 2 0:1 / /a\\134b\\012c rw - tmpfs t rw").at(0).point == "/a\\b\nc");
  CHECK(parse_mounts("1 2 0:1 / /end\\04 rw - tmpfs t rw").at(0).point == "/end\\04");
}

TEST_CASE("what is no mountinfo makes no mounts of anything", "[init]") {
  CHECK(parse_mounts("").empty());
  for (const char* text : {"\n", "x", "1 2 3 4", " - ", "1 2 0:1 / /x rw"}) {
    for (const auto& mount : parse_mounts(text)) CHECK(mount.type.empty());
  }
}

TEST_CASE("this process has a root", "[init]") {
  const auto mounts = contexts::init::own_mounts();
  REQUIRE(mounts);
  CHECK(
      std::any_of(mounts->begin(), mounts->end(), [](const auto& it) { return it.point == "/"; }));
}
