#include "contexts/farm.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/context_client.h"
#include "tests/support/temp_dir.h"

using contexts::Farm;

namespace {

/// A farm in an ordinary folder; hard links are the same there.
class World {
 public:
  World() : farm_(make()) {
    std::filesystem::create_directories(real_ / "sub");
    add("tool");
    add("data", 0644);
    std::filesystem::create_symlink("tool", real_ / "link");
    std::filesystem::create_symlink("nowhere", real_ / "dangling");
  }

  void add(const std::string& name, mode_t mode = 0755) {
    if (!base::write_file(real_ / name, "real", mode)) FAIL("write " << name);
  }
  std::string folder() const { return std::filesystem::canonical(real_.path()); }
  Farm& farm() { return farm_; }
  std::string real(const std::string& name) const { return real_ / name; }

  std::string cover() {
    shims_ = root_ / support::value_of(farm_.cover(folder()));
    return shims_;
  }
  /// "stub", "blank", "link" or "none".
  std::string kind(const std::string& name) const {
    const std::string path = shims_ + "/" + name;
    struct stat info {};
    struct stat stub {};
    struct stat blank {};
    if (::lstat(path.c_str(), &info) != 0) return "none";
    if (S_ISLNK(info.st_mode)) return "link";
    ::stat((root_ / "airlock-stub").c_str(), &stub);
    ::stat((root_ / "blank").c_str(), &blank);
    if (info.st_ino == stub.st_ino) return "stub";
    return info.st_ino == blank.st_ino ? "blank" : "other";
  }
  std::string stub_bytes() const {
    return support::value_of(base::read_file(root_ / "airlock-stub"));
  }

 private:
  Farm make() {
    auto root = support::value_of(base::open_file(root_.path(), O_RDONLY | O_DIRECTORY));
    return support::value_of(Farm::create(
        std::move(root), support::programs_folder() + "/airlock-stub", "/run/some-airlock"));
  }

  support::TempDir root_;
  support::TempDir real_;
  Farm farm_;
  std::string shims_;
};

}  // namespace

TEST_CASE("every program of a covered folder is a hard link to the stub", "[contexts]") {
  World world;
  world.cover();
  CHECK(world.kind("tool") == "stub");
  CHECK(world.kind("link") == "stub");
  CHECK(world.kind("data") == "blank");
  CHECK(world.kind("dangling") == "none");
  CHECK(world.kind("sub") == "none");
}

TEST_CASE("the farm's stub knows its folder", "[contexts]") {
  const World world;
  CHECK(world.stub_bytes().find(std::string("/run/some-airlock\0", 18)) != std::string::npos);
  const auto original =
      support::value_of(base::read_file(support::programs_folder() + "/airlock-stub"));
  CHECK(original.find("/run/some-airlock") == std::string::npos);
  CHECK(world.stub_bytes().size() == original.size());
}

TEST_CASE("what comes, goes or changes its mode has the shim it should have", "[contexts]") {
  World world;
  world.cover();
  const auto refresh = [&world](const std::string& name) {
    if (GENERATE(true, false)) {
      world.farm().refresh(world.folder(), name);
    } else {
      world.farm().refresh(world.folder());
    }
  };
  SECTION("new") {
    world.add("new");
    refresh("new");
    CHECK(world.kind("new") == "stub");
  }
  SECTION("removed") {
    std::filesystem::remove(world.real("tool"));
    refresh("tool");
    CHECK(world.kind("tool") == "none");
  }
  SECTION("no longer executable") {
    ::chmod(world.real("tool").c_str(), 0644);
    refresh("tool");
    CHECK(world.kind("tool") == "blank");
  }
  SECTION("replaced by a folder") {
    std::filesystem::remove(world.real("tool"));
    std::filesystem::create_directory(world.real("tool"));
    refresh("tool");
    CHECK(world.kind("tool") == "none");
  }
}

TEST_CASE("a link that is kept shows as it is", "[contexts]") {
  World world;
  const auto shims = world.cover();
  world.farm().keep_link(world.folder(), "link");
  CHECK(world.kind("link") == "link");
  CHECK(std::filesystem::read_symlink(shims + "/link") == "tool");
  world.farm().refresh(world.folder());
  CHECK(world.kind("link") == "link");
}

TEST_CASE("programs of a layer have shims, too", "[contexts]") {
  World world;
  const support::TempDir layer;
  world.cover();
  const auto add = [&layer](const char* name, mode_t mode) {
    if (!base::write_file(layer / name, "x", mode)) FAIL("write " << name);
  };
  add("installed", 0755);
  add("notes", 0644);
  add("tool", 0644);  // hidden in the children's context; the real one has its shim all the same
  std::filesystem::create_symlink("/only/there", layer / "dangling-here");
  std::filesystem::create_directory(layer / "folder");
  world.farm().set_layer(world.folder(), contexts::UpperPath{layer.path(), "."});
  CHECK(world.kind("installed") == "none");
  world.farm().refresh(world.folder());
  CHECK(world.kind("installed") == "stub");
  CHECK(world.kind("dangling-here") == "stub");
  CHECK(world.kind("notes") == "blank");
  CHECK(world.kind("tool") == "stub");
  CHECK(world.kind("folder") == "none");
  std::filesystem::remove(layer / "installed");
  world.farm().refresh(world.folder(), "installed");
  CHECK(world.kind("installed") == "none");
  world.farm().set_layer(world.folder(), std::nullopt);
  world.farm().refresh(world.folder());
  CHECK(world.kind("dangling-here") == "none");
  CHECK(world.kind("tool") == "stub");
}

TEST_CASE("covering twice is covering once", "[contexts]") {
  World world;
  const auto first = world.cover();
  CHECK(world.cover() == first);
  CHECK(world.farm().covered().size() == 1);
}

TEST_CASE("no farm is made of what is no stub", "[contexts]") {
  const support::TempDir root;
  auto fd = support::value_of(base::open_file(root.path(), O_RDONLY | O_DIRECTORY));
  CHECK_FALSE(Farm::create(std::move(fd), "/bin/sh", "/run/airlock"));
}
