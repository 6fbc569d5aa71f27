#include "routerd/audit/audit_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/temp_dir.h"

using routerd::audit::AuditLog;
using routerd::audit::Head;
using routerd::audit::verify;

namespace {

/// Writes `count` records by a log that is open only for that.
Head write_records(const routerd::audit::Options& options, int count) {
  auto log = AuditLog::open(options);
  REQUIRE(log);
  for (int i = 0; i < count; ++i) (*log)->add("exec", {{"number", i}});
  log->reset();
  const auto checked = verify(options.folder, {});
  REQUIRE(checked);
  REQUIRE(checked->problems().empty());
  return checked->last();
}

}  // namespace

TEST_CASE("an audit log is its owner's, and goes on after a restart", "[audit]") {
  const support::TempDir dir;
  const routerd::audit::Options options{.folder = dir.path() + "/audit"};
  CHECK(write_records(options, 3).number == 4);
  CHECK(write_records(options, 3).number == 7);
  struct stat info {};
  REQUIRE(::stat((options.folder + "/audit.jsonl").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  REQUIRE(::stat(options.folder.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
}

TEST_CASE("rotation keeps so many files, and the chain goes over their borders", "[audit]") {
  const support::TempDir dir;
  const routerd::audit::Options options{
      .folder = dir.path() + "/audit", .max_bytes = 1000, .keep = 2};
  for (int i = 0; i < 20; ++i) write_records(options, 10);
  CHECK(routerd::audit::files_in(options.folder).size() == 3);
  const auto checked = verify(options.folder, {});
  REQUIRE(checked);
  CHECK(checked->first().number > 1);
}

TEST_CASE("what was cut off is not continued", "[audit]") {
  const support::TempDir dir;
  const routerd::audit::Options options{.folder = dir.path() + "/audit"};
  write_records(options, 3);
  const auto path = options.folder + "/audit.jsonl";
  const auto text = base::read_file(path);
  REQUIRE(text);
  REQUIRE(base::write_file(path, text->substr(0, text->size() - 5), 0600));
  const auto log = AuditLog::open(options);
  REQUIRE_FALSE(log);
  CHECK(log.error().code == EBADMSG);
}

TEST_CASE("a link in the place of the file is not followed", "[audit]") {
  const support::TempDir dir;
  const routerd::audit::Options options{.folder = dir.path() + "/audit"};
  REQUIRE(::mkdir(options.folder.c_str(), 0700) == 0);
  REQUIRE(::symlink("/dev/full", (options.folder + "/audit.jsonl").c_str()) == 0);
  const auto refused = AuditLog::open(options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ELOOP);
}

TEST_CASE("more than the queue holds is dropped, not waited for", "[audit]") {
  const support::TempDir dir;
  const routerd::audit::Options options{.folder = dir.path() + "/audit"};
  std::uint64_t dropped = 0;
  constexpr std::uint64_t kMany = AuditLog::kMaxQueued * 4;
  {
    auto log = AuditLog::open(options);
    REQUIRE(log);
    for (std::uint64_t i = 0; i < kMany; ++i) (*log)->add("exec", {{"number", i}});
    dropped = (*log)->dropped();
  }
  const auto checked = verify(options.folder, {});
  REQUIRE(checked);
  CHECK(checked->problems().empty());
  CHECK(checked->lines() + dropped >= kMany);
}
