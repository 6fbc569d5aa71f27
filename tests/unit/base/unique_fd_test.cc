#include "base/unique_fd.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <type_traits>

#include "tests/support/fd_leak_check.h"

using base::UniqueFd;

namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

static_assert(!std::is_copy_constructible_v<UniqueFd> && !std::is_copy_assignable_v<UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFd>);
static_assert(!std::is_convertible_v<int, UniqueFd>, "taking ownership must be visible");

}  // namespace

TEST_CASE("a UniqueFd closes its descriptor at the end of its life", "[base]") {
  const support::FdLeakCheck leaks;
  int number = -1;
  {
    const UniqueFd fd(open_null());
    number = fd.borrow();
    CHECK(fd);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("an empty UniqueFd is false and -1", "[base]") {
  const UniqueFd fd;
  CHECK_FALSE(fd);
  CHECK(fd.borrow() == -1);
}

TEST_CASE("descriptor 0 counts as owned", "[base]") {
  // Not open(2)'ed here: only the state is looked at.
  UniqueFd fd(0);
  CHECK(fd);
  CHECK(fd.release() == 0);
}

TEST_CASE("moving a UniqueFd leaves the source empty and closes what the target had", "[base]") {
  const support::FdLeakCheck leaks;
  UniqueFd source(open_null());
  UniqueFd target(open_null());
  const int moved = source.borrow();
  const int replaced = target.borrow();
  target = std::move(source);
  CHECK(target.borrow() == moved);
  CHECK_FALSE(source);
  CHECK(is_open(moved));
  CHECK_FALSE(is_open(replaced));

  const UniqueFd third(std::move(target));
  CHECK(third.borrow() == moved);
  CHECK_FALSE(target);
}

TEST_CASE("a UniqueFd survives being moved onto itself", "[base]") {
  UniqueFd fd(open_null());
  const int number = fd.borrow();
  UniqueFd& alias = fd;
  fd = std::move(alias);
  CHECK(fd.borrow() == number);
  CHECK(is_open(number));
}

TEST_CASE("release gives the descriptor up without closing it", "[base]") {
  UniqueFd fd(open_null());
  const int number = fd.release();
  CHECK_FALSE(fd);
  CHECK(is_open(number));
  ::close(number);
}

TEST_CASE("reset closes the old descriptor and takes the new one", "[base]") {
  const support::FdLeakCheck leaks;
  UniqueFd fd(open_null());
  const int first = fd.borrow();
  const int second = open_null();
  fd.reset(second);
  CHECK(fd.borrow() == second);
  CHECK_FALSE(is_open(first));
  fd.reset(second);
  CHECK(is_open(second));
  fd.reset();
  CHECK_FALSE(fd);
  CHECK_FALSE(is_open(second));
}
