#include "contexts/limits.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

using contexts::lower_rlimits;
using contexts::pid_max_for;

TEST_CASE("resource limits are lowered and never raised", "[contexts][limits]") {
  wire::ProcessState state;
  state.rlimits = {{RLIMIT_NOFILE, 1024, 4096}, {RLIMIT_CORE, 0, 0}, {RLIMIT_DATA, 10, 20}};
  lower_rlimits(state, {{RLIMIT_NOFILE, 2000, 2000}, {RLIMIT_NPROC, 7, 7}, {RLIMIT_DATA, 30, 30}});
  const std::vector<wire::Rlimit> expected = {{RLIMIT_NOFILE, 1024, 2000},
                                              {RLIMIT_CORE, 0, 0},
                                              {RLIMIT_DATA, 10, 20},
                                              {RLIMIT_NPROC, 7, 7}};
  CHECK(state.rlimits == expected);
}

TEST_CASE("without caps nothing changes", "[contexts][limits]") {
  wire::ProcessState state;
  state.rlimits = {{RLIMIT_NOFILE, 1024, 4096}};
  const auto before = state;
  lower_rlimits(state, {});
  CHECK(state == before);
}

TEST_CASE("numbers the kernel gives once are counted on top", "[contexts][limits]") {
  CHECK(pid_max_for(8) == 308);
  CHECK(pid_max_for(std::uint64_t{1} << 40) == 4 << 20);
}
