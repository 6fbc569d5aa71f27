#include "routerd/job_store.h"

#include <fcntl.h>

#include <catch2/catch.hpp>

#include "tests/support/fd_leak_check.h"
#include "wire/limits.h"

using routerd::JobStore;

namespace {

JobStore::Kept kept(const std::string& note, std::initializer_list<std::string_view> streams) {
  JobStore::Kept result{note, streams, {}};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    result.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return result;
}

}  // namespace

TEST_CASE("a job store keeps descriptors and a note until they are released", "[routerd]") {
  const support::FdLeakCheck no_leak;
  JobStore store;
  REQUIRE(store.add("a", kept("first", {"job", "stdout"})));
  CHECK(store.add("a", kept("again", {})).error().code == EEXIST);
  REQUIRE(store.update("a", kept("second", {"tty"})));
  REQUIRE(store.find("a") != nullptr);
  CHECK(store.find("a")->note == "second");
  CHECK(store.find("a")->streams == wire::StringList{"job", "stdout", "tty"});
  CHECK(store.find("a")->fds.size() == 3);
  CHECK(store.find("b") == nullptr);
  CHECK(store.update("b", kept("", {})).error().code == ENOENT);
  store.release_stream("a", "job");
  store.release_stream("b", "job");
  CHECK(store.find("a")->streams == wire::StringList{"stdout", "tty"});
  CHECK(store.find("a")->fds.size() == 2);
  CHECK(store.release("a"));
  CHECK_FALSE(store.release("a"));
}

TEST_CASE("a job store has limits", "[routerd]") {
  JobStore store;
  CHECK(store.add("", kept("", {})).error().code == EINVAL);
  CHECK(store.add(std::string(wire::kMaxKeptKey + 1, 'k'), kept("", {})).error().code == EINVAL);
  CHECK(store.add("k", kept(std::string(wire::kMaxKeptNote + 1, 'n'), {})).error().code ==
        EMSGSIZE);
  CHECK(store.add("k", {"", {"job"}, {}}).error().code == EBADMSG);
  REQUIRE(store.add("k", kept("", {})));
  for (std::size_t i = 0; i < JobStore::kMaxStreams; ++i)
    REQUIRE(store.update("k", kept("", {"tty"})));
  CHECK(store.update("k", kept("", {"tty"})).error().code == EMSGSIZE);
  for (std::size_t i = 1; i < wire::kMaxKeptJobs; ++i)
    REQUIRE(store.add("k" + std::to_string(i), kept("", {})));
  CHECK(store.add("one more", kept("", {})).error().code == ENOSPC);
}
