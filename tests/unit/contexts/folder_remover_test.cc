#include "contexts/folder_remover.h"

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
