#include "contexts/folder_remover.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/temp_dir.h"

using contexts::FolderRemover;

namespace {

void fill(const std::string& folder) {
  std::filesystem::create_directories(folder + "/deep/er");
  if (!base::write_file(folder + "/deep/er/file", "x", 0600)) FAIL("write in " << folder);
}

/// Further down than this process may have descriptors, or a path may be long.
void nest(const std::string& folder, int depth) {
  std::filesystem::create_directory(folder);
  auto at = base::open_file(folder, O_PATH | O_DIRECTORY).value();
  for (int i = 0; i < depth; ++i) {
    REQUIRE(::mkdirat(at.borrow(), "folder", 0700) == 0);
    at.reset(::openat(at.borrow(), "folder", O_PATH | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(at);
  }
}

}  // namespace

TEST_CASE("a folder is gone from its place at once, and its remains when the remover ends",
          "[contexts]") {
  const support::TempDir parent;
  const std::string folder = parent / "upper";
  fill(folder);
  {
    FolderRemover remover;
    remover.remove(folder);
    CHECK_FALSE(std::filesystem::exists(folder));
    fill(folder);  // its name can be used again meanwhile
    remover.remove(folder);
    CHECK_FALSE(std::filesystem::exists(folder));
  }
  CHECK(std::filesystem::is_empty(parent.path()));
}

TEST_CASE("a folder that is not there is no error", "[contexts]") {
  const support::TempDir parent;
  FolderRemover remover;
  remover.remove(parent / "nothing");
  CHECK(std::filesystem::is_empty(parent.path()));
}

TEST_CASE("folders can be nested as deep as a context likes", "[contexts]") {
  const support::TempDir parent;
  nest(parent / "upper", 3000);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{64, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  FolderRemover().remove(parent / "upper");
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(std::filesystem::is_empty(parent.path()));
}

TEST_CASE("what a daemon with this pid has left is in nobody's way", "[contexts]") {
  const support::TempDir parent;
  const std::string left = parent / (".gone-" + std::to_string(::getpid()) + "-1");
  fill(left);
  fill(parent / "upper");
  fill(parent / "upper/1");  // a name that the remover could choose, too
  FolderRemover().remove(parent / "upper");
  CHECK_FALSE(std::filesystem::exists(parent / "upper"));
  CHECK(std::filesystem::exists(left + "/deep/er/file"));
  FolderRemover().remove(left);
  CHECK(std::filesystem::is_empty(parent.path()));
}

TEST_CASE("a link is removed, and not what it leads to", "[contexts]") {
  const support::TempDir parent, elsewhere;
  fill(elsewhere / "kept");
  fill(parent / "upper");
  std::filesystem::create_directory_symlink(elsewhere / "kept", parent / "upper/link");
  FolderRemover().remove(parent / "upper");
  CHECK(std::filesystem::is_empty(parent.path()));
  CHECK(std::filesystem::exists(elsewhere / "kept/deep/er/file"));
}
