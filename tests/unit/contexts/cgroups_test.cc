#include "contexts/cgroups.h"

#include <catch2/catch.hpp>

using contexts::CgroupPlace;
using contexts::Cgroups;
using contexts::place_of;

namespace {

constexpr const char* kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kHybridOwn = "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n";

using Folders = std::vector<std::string>;

}  // namespace

TEST_CASE("version 1: the own cgroup in the controller's hierarchy", "[contexts][cgroups]") {
  CHECK(place_of("cpu", kHybrid, kHybridOwn) ==
        CgroupPlace{Folders{"/sys/fs/cgroup/cpu,cpuacct"}, false});
  CHECK(place_of("memory", kHybrid, kHybridOwn) ==
        CgroupPlace{Folders{"/sys/fs/cgroup/memory/jobs/7"}, false});
}

TEST_CASE("a controller without a version 1 hierarchy may be in version 2", "[contexts][cgroups]") {
  CHECK(place_of("pids", kHybrid, kHybridOwn) ==
        CgroupPlace{Folders{"/sys/fs/cgroup/unified"}, true});
}

TEST_CASE("version 2 without any controller, beside version 1", "[contexts][cgroups]") {
  CHECK(place_of("", kHybrid, kHybridOwn) == CgroupPlace{Folders{"/sys/fs/cgroup/unified"}, true});
}

TEST_CASE("version 2: the own cgroup, or that above it", "[contexts][cgroups]") {
  constexpr const char* kMounts = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  CHECK(place_of("memory", kMounts, "0::/system.slice/airlock.service/daemon\n") ==
        CgroupPlace{Folders{"/sys/fs/cgroup/system.slice/airlock.service/daemon",
                            "/sys/fs/cgroup/system.slice/airlock.service"},
                    true});
}

TEST_CASE("a mount that shows a part of the hierarchy", "[contexts][cgroups]") {
  constexpr const char* kMounts =
      "30 1 0:26 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
  CHECK(place_of("pids", kMounts, "8:pids:/docker/abc\n") ==
        CgroupPlace{Folders{"/sys/fs/cgroup/pids"}, false});
}

TEST_CASE("no place where nothing is mounted or nothing is known", "[contexts][cgroups]") {
  CHECK_FALSE(place_of("pids", "", ""));
  CHECK_FALSE(place_of("pids", kHybrid, ""));
  CHECK_FALSE(place_of("pids", "30 1 0:26 / /x\n30\n - cgroup\n", "garbage\n::\n"));
}

TEST_CASE("what is not asked for is not kept", "[contexts][cgroups]") {
  const auto none = Cgroups::create("user", {.open_files = 16});
  CHECK(none.keeps("pids").empty());
  CHECK(none.why_not("pids").empty());
  CHECK(none.hits("pids") == 0);
}
