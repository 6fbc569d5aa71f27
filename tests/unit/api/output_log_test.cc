#include "api/output_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/fds.h"

using api::OutputLog;

TEST_CASE("a log takes what is in a pipe and tells its end", "[api]") {
  auto pipe = support::make_pipe();
  REQUIRE(base::set_nonblocking(pipe.read.borrow(), true));
  auto log = OutputLog::create(100);
  REQUIRE(log);
  CHECK(log->fill(pipe.read.borrow(), 100) == std::size_t{0});
  REQUIRE(base::write_all(pipe.write.borrow(), "hello"));
  CHECK(log->fill(pipe.read.borrow(), 3) == std::size_t{3});
  CHECK(log->fill(pipe.read.borrow(), 100) == std::size_t{2});
  CHECK(log->end() == 5);
  CHECK(log->read(0, 100) == "hello");
  CHECK(log->read(3, 1) == "l");
  CHECK(log->read(5, 100).empty());
  pipe.write.reset();
  const auto over = log->fill(pipe.read.borrow(), 100);
  REQUIRE_FALSE(over);
  CHECK(over.error().code == EPIPE);
}

TEST_CASE("a long log keeps its head and its tail, at the same offsets", "[api]") {
  auto log = OutputLog::create(8192);
  REQUIRE(log);
  std::string all;
  for (int i = 0; all.size() < 3'000'000; ++i) {
    const std::string part = std::to_string(i) + "\n";
    all += part;
    REQUIRE(log->append(part));
  }
  CHECK(log->end() == all.size());
  CHECK(log->hole_begin() >= 4096);
  CHECK(log->end() - log->hole_end() >= 4096);
  CHECK(log->end() - log->hole_end() < 600'000);
  CHECK(log->read(0, 4096) == all.substr(0, 4096));
  CHECK(log->read(log->end() - 4096, 5000) == all.substr(all.size() - 4096));
  CHECK(log->read(log->hole_begin(), 1).empty());
  CHECK(log->read(log->hole_begin() - 2, 100) == all.substr(log->hole_begin() - 2, 2));

  // Whoever takes the file over sees the same.
  auto second = OutputLog::adopt(base::UniqueFd(::fcntl(log->file(), F_DUPFD_CLOEXEC, 3)), 8192);
  REQUIRE(second);
  CHECK(second->end() == log->end());
  CHECK(second->hole_begin() == log->hole_begin());
  CHECK(second->hole_end() == log->hole_end());
  REQUIRE(second->append("more"));
  CHECK(second->read(log->end(), 100) == "more");
}

TEST_CASE("what a reader has not seen yet is kept", "[api]") {
  auto log = OutputLog::create(0);
  REQUIRE(log);
  log->hold_from(100);
  REQUIRE(log->append(std::string(2'000'000, 'x')));
  CHECK(log->read(100, 10) == "xxxxxxxxxx");
  log->hold_from(~std::uint64_t{0});
  REQUIRE(log->append("y"));
  CHECK(log->hole_end() > 1'900'000);
}
