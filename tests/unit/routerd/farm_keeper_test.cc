#include "routerd/farm_keeper.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "contexts/system_folders.h"
#include "tests/support/context_client.h"
#include "tests/support/event_loop.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/temp_dir.h"

namespace {

struct World {
  World() {
    auto root = support::value_of(base::open_file(farm_root.path(), O_RDONLY | O_DIRECTORY));
    auto farm = support::value_of(contexts::Farm::create(
        std::move(root), support::programs_folder() + "/airlock-stub", "/run/airlock"));
    keeper = support::value_of(routerd::FarmKeeper::create(loop.io(), std::move(farm)));
    std::filesystem::create_directory(folder());
  }
  std::string folder() const { return std::filesystem::canonical(real.path()) / "bin"; }
  void add(const std::string& name) const {
    if (!base::write_file(folder() + "/" + name, "x", 0755)) FAIL("write " << name);
  }
  bool has_shim(const std::string& name) const {
    return std::filesystem::exists(farm_root / ("0/" + name));
  }

  support::EventLoop loop;
  support::TempDir farm_root;
  support::TempDir real;
  std::unique_ptr<routerd::FarmKeeper> keeper;
};

}  // namespace

TEST_CASE("a program that is installed or removed gets or loses its shim", "[routerd]") {
  const support::FdLeakCheck leaks;
  World world;
  REQUIRE(world.keeper->cover(world.folder()));
  world.add("new");
  world.loop.run_until([&] { return world.has_shim("new"); });
  std::filesystem::rename(world.folder() + "/new", world.folder() + "/newer");
  world.loop.run_until([&] { return !world.has_shim("new") && world.has_shim("newer"); });
  std::filesystem::remove(world.folder() + "/newer");
  world.loop.run_until([&] { return !world.has_shim("newer"); });
}

TEST_CASE("a folder that was moved away is watched again when it is covered again", "[routerd]") {
  World world;
  REQUIRE(world.keeper->cover(world.folder()));
  world.add("old");
  world.loop.run_until([&] { return world.has_shim("old"); });
  std::filesystem::rename(world.folder(), world.folder() + ".old");
  world.loop.run_until([&] { return !world.has_shim("old"); });
  std::filesystem::create_directory(world.folder());
  world.add("before");
  REQUIRE(world.keeper->cover(world.folder()));
  CHECK(world.has_shim("before"));
  world.add("after");
  world.loop.run_until([&] { return world.has_shim("after"); });
}

TEST_CASE("what children install in an upper layer gets a shim while it is followed", "[routerd]") {
  World world;
  // A system folder must be covered, in which nothing is made: only the upper layers are.
  const std::string system = std::filesystem::canonical("/usr/bin");
  const support::TempDir one, other;
  const auto layer = [&system](const support::TempDir& upper) {
    const auto place = contexts::upper_path(upper.path(), system).value();
    return place.layer + "/" + place.below;
  };
  const auto install = [&](const support::TempDir& upper, const std::string& name) {
    if (!base::write_file(layer(upper) + "/" + name, "x", 0755)) FAIL("install " << name);
  };
  std::filesystem::create_directories(layer(one));
  std::filesystem::create_directories(layer(other));
  REQUIRE(world.keeper->cover(system));
  install(one, "airlock-early");
  world.keeper->follow(one.path());
  CHECK(world.has_shim("airlock-early"));
  CHECK(world.has_shim("env"));
  install(one, "airlock-late");
  world.loop.run_until([&] { return world.has_shim("airlock-late"); });
  install(other, "airlock-other");
  world.keeper->follow(other.path());
  CHECK_FALSE(world.has_shim("airlock-early"));
  CHECK(world.has_shim("airlock-other"));
  install(one, "airlock-unseen");
  install(other, "airlock-seen");
  world.loop.run_until([&] { return world.has_shim("airlock-seen"); });
  CHECK_FALSE(world.has_shim("airlock-unseen"));
  world.keeper->follow("");
  CHECK_FALSE(world.has_shim("airlock-seen"));
  CHECK(world.has_shim("env"));
}

TEST_CASE("a link that a context makes in its upper layer leads nowhere", "[routerd]") {
  World world;
  const std::string system = std::filesystem::canonical("/usr/bin");
  const support::TempDir upper, elsewhere;
  const auto place = contexts::upper_path(upper.path(), system).value();
  const auto layer = place.layer + "/" + place.below;
  std::filesystem::create_directories(std::filesystem::path(layer).parent_path());
  if (!base::write_file(elsewhere / "airlock-secret", "x", 0755)) FAIL("write");
  std::filesystem::create_directory_symlink(elsewhere.path(), layer);
  REQUIRE(world.keeper->cover(system));
  world.keeper->follow(upper.path());
  CHECK_FALSE(world.has_shim("airlock-secret"));
  CHECK(world.has_shim("env"));

  // A folder in its place is followed from the next launch on.
  std::filesystem::remove(layer);
  std::filesystem::create_directory(layer);
  if (!base::write_file(layer + "/airlock-installed", "x", 0755)) FAIL("write");
  REQUIRE(world.keeper->cover(system));
  CHECK(world.has_shim("airlock-installed"));
  // And one whose link came later is left.
  std::filesystem::rename(layer, layer + ".old");
  std::filesystem::create_directory_symlink(elsewhere.path(), layer);
  world.loop.run_until([&] { return !world.has_shim("airlock-installed"); });
  REQUIRE(world.keeper->cover(system));
  CHECK_FALSE(world.has_shim("airlock-secret"));
}
