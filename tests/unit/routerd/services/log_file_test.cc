#include "routerd/services/log_file.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/temp_dir.h"

using routerd::services::LogFile;

namespace {

std::string content(const std::string& path) {
  auto text = base::read_file(path);
  return text ? *text : "(none)";
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

TEST_CASE("a log is private and goes on where it ended", "[services]") {
  const support::TempDir dir;
  const std::string path = dir.path() + "/a.log";
  {
    LogFile log(path, {});
    CHECK_FALSE(exists(path));
    log.append("one\n");
  }
  LogFile log(path, {});
  log.append("two\n");
  CHECK(content(path) == "one\ntwo\n");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(log.tail(100) == "one\ntwo\n");
  CHECK(log.tail(6) == "two\n");  // whole lines only
}

TEST_CASE("a log that grows too large is rotated and the oldest file removed", "[services]") {
  const support::TempDir dir;
  const std::string path = dir.path() + "/a.log";
  LogFile log(path, {.max_bytes = 10, .keep = 2});
  for (const char* line : {"1111111\n", "2222222\n", "3333333\n", "4444444\n"}) log.append(line);
  CHECK(content(path) == "4444444\n");
  CHECK(content(path + ".1") == "3333333\n");
  CHECK(content(path + ".2") == "2222222\n");
  CHECK_FALSE(exists(path + ".3"));
  CHECK(log.dropped() == 0);
  CHECK(log.tail(100) == "3333333\n4444444\n");
  log.append("a line that is longer than a whole file\n");
  CHECK(content(path) == "a line that is longer than a whole file\n");
}

TEST_CASE("lines that come at once are spread over files as if they came one by one",
          "[services]") {
  const support::TempDir dir;
  const std::string path = dir.path() + "/a.log";
  LogFile log(path, {.max_bytes = 10, .keep = 2});
  log.append("111\n222\n3333333\n444\na line that is longer than a file\n555");
  CHECK(content(path + ".2") == "444\n");
  CHECK(content(path + ".1") == "a line that is longer than a file\n");
  CHECK(content(path) == "555");
  CHECK(log.dropped() == 0);
}

TEST_CASE("without files to keep a full log starts over", "[services]") {
  const support::TempDir dir;
  LogFile log(dir.path() + "/a.log", {.max_bytes = 10, .keep = 0});
  log.append("1111111\n");
  log.append("2222222\n");
  CHECK(content(log.path()) == "2222222\n");
  CHECK_FALSE(exists(log.path() + ".1"));
}

TEST_CASE("a full disk loses the log and nothing else", "[services]") {
  LogFile log("/dev/full", {});
  log.append("12345");
  CHECK(log.dropped() == 5);
  CHECK(log.last_error().find("No space left") != std::string::npos);
  log.append("678");
  CHECK(log.dropped() == 8);
}

TEST_CASE("a log that cannot be opened is tried again", "[services]") {
  const support::TempDir dir;
  const std::string folder = dir.path() + "/later";
  LogFile log(folder + "/a.log", {});
  log.append("lost");
  CHECK(log.dropped() == 4);
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  log.append("kept");
  CHECK(log.dropped() == 4);
  CHECK(content(log.path()) == "kept");
}
