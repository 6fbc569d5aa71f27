#include "contexts/uid_lease.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "contexts/tier.h"
#include "tests/support/child.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"

using contexts::UidLease;

namespace {

uid_t taken(const base::Result<UidLease>& lease) {
  REQUIRE(lease);
  return lease->uid();
}

}  // namespace

TEST_CASE("a name gets the same user id again, and nobody else gets it meanwhile",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  uid_t first = 0;
  {
    const auto lease = UidLease::take("lease-test");
    first = taken(lease);
    CHECK(first >= contexts::kFirstOwnUid);
    CHECK(first <= contexts::kLastOwnUid);
    const auto second = UidLease::take("lease-test");
    CHECK(taken(second) != first);
  }
  CHECK(taken(UidLease::take("lease-test")) == first);
}

TEST_CASE("each lease has a block of ids, below 2^31", "[contexts][root]") {
  if (support::lacks_root()) return;
  const auto one = UidLease::take("lease-block");
  const auto two = UidLease::take("lease-block");
  REQUIRE((one && two));
  CHECK(one->first_of_block() % 65536 == 0);
  CHECK(one->first_of_block() != two->first_of_block());
  CHECK(one->first_of_block() >= 0x70000000);
  CHECK(std::uint64_t{one->first_of_block()} + 65535 < std::uint64_t{1} << 31);
}

TEST_CASE("another daemon does not get an id that is taken", "[contexts][root]") {
  if (support::lacks_root()) return;
  const auto lease = UidLease::take("lease-test-two");
  const uid_t mine = taken(lease);
  support::Child other([mine] {
    const auto theirs = UidLease::take("lease-test-two");
    return theirs && theirs->uid() != mine ? 0 : 1;
  });
  CHECK(other.wait().exit_code() == 0);
}

TEST_CASE("an id that a process has is not given away", "[contexts][root]") {
  if (support::lacks_root()) return;
  const uid_t wanted = taken(UidLease::take("lease-test-three"));
  auto pipe = support::make_pipe();
  support::Child user([&] {
    if (::setresuid(wanted, wanted, wanted) != 0 || ::write(pipe.write.borrow(), "r", 1) != 1)
      return 1;
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(support::read_byte(pipe.read.borrow()) == 'r');
  CHECK(contexts::count_processes_of(wanted) == 1);
  CHECK(taken(UidLease::take("lease-test-three")) != wanted);
  user.kill(SIGKILL);
  user.wait();
  CHECK(contexts::count_processes_of(wanted) == 0);
  CHECK(taken(UidLease::take("lease-test-three")) == wanted);
}

TEST_CASE("only root can have user ids to give", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, [] {
          const auto lease = UidLease::take("x");
          return lease ? "taken" : lease.error().message();
        }).find("CAP_SETUID") != std::string::npos);
}
