#include "routerd/launch.h"

#include <catch2/catch.hpp>

using namespace routerd;
using contexts::Environment;

namespace {

Launch launch_of(const std::string& agent) {
  Launch launch;
  launch.agent.executable = agent;
  return launch;
}

std::string found(const Launches& launches, const std::vector<std::string_view>& env) {
  return launches.find(env).agent.executable;
}

}  // namespace

TEST_CASE("a launch is found by the variable its children inherit", "[routerd]") {
  Launches launches;
  const auto first = launches.add(launch_of("first")).id;
  const auto second = launches.add(launch_of("second")).id;
  CHECK(first != second);
  const std::string name(Launches::kLaunchVariable);
  const std::string to_first = name + "=" + std::to_string(first);
  const std::string to_second = name + "=" + std::to_string(second);
  CHECK(found(launches, {"A=1", to_first}) == "first");
  CHECK(found(launches, {to_second, "A=1"}) == "second");
  // As getenv(3): the first entry counts.
  CHECK(found(launches, {to_first, to_second}) == "first");
}

TEST_CASE("without a launch of theirs children belong to the latest", "[routerd]") {
  Launches launches;
  (void)launches.add(launch_of("first"));
  (void)launches.add(launch_of("latest"));
  const std::string name(Launches::kLaunchVariable);
  CHECK(found(launches, {}) == "latest");
  for (const auto& entry : {name + "=", name + "=0", name + "=999", name + "=x", name + "=-1", name,
                            name + "=99999999999999999999999999", "X" + name + "=1"}) {
    CAPTURE(entry);
    CHECK(found(launches, {entry}) == "latest");
  }
}

TEST_CASE("without any launch there is one that knows nothing", "[routerd]") {
  const Launches launches;
  const Launch& launch = launches.find({"AIRLOCK_LAUNCH=1"});
  CHECK(launch.id == 0);
  CHECK(launch.start_env.empty());
  CHECK(launch.agent.executable.empty());
  CHECK(launch.agent.profile.empty());
}

TEST_CASE("only so many launches are kept, the oldest goes first", "[routerd]") {
  Launches launches;
  const auto oldest = launches.add(launch_of("oldest")).id;
  const auto second = launches.add(launch_of("second")).id;
  for (std::size_t i = 2; i < Launches::kKept; ++i) (void)launches.add(launch_of("other"));
  const auto variable = [](std::uint64_t id) { return "AIRLOCK_LAUNCH=" + std::to_string(id); };
  const std::string to_oldest = variable(oldest), to_second = variable(second);
  CHECK(found(launches, {to_oldest}) == "oldest");
  (void)launches.add(launch_of("newest"));
  CHECK(found(launches, {to_oldest}) == "newest");
  CHECK(found(launches, {to_second}) == "second");
}

TEST_CASE("a launch is found by its number and by the variable alone", "[routerd]") {
  Launches launches;
  const auto id = launches.add(launch_of("first")).id;
  (void)launches.add(launch_of("second"));
  CHECK(launches.size() == 2);
  REQUIRE(launches.find(id) != nullptr);
  launches.find(id)->agent.executable = "settled";
  const std::string variable = "AIRLOCK_LAUNCH=" + std::to_string(id);
  REQUIRE(launches.named_in({variable}) != nullptr);
  CHECK(launches.named_in({variable})->agent.executable == "settled");
  CHECK(launches.find(999) == nullptr);
  CHECK(launches.named_in({}) == nullptr);
  CHECK(launches.named_in({"AIRLOCK_LAUNCH=999"}) == nullptr);
}

TEST_CASE("setting a variable replaces every earlier entry of that name only", "[routerd]") {
  Environment env = {"A=1", "AB=2", "A=3", "A", "=A"};
  set_variable(env, "A", "new");
  CHECK(env == Environment{"AB=2", "A", "=A", "A=new"});
  set_variable(env, "B", "");
  CHECK(env.back() == "B=");
}

TEST_CASE("the first entry of a name is its value", "[routerd]") {
  const Environment env = {"AB=0", "A=1", "A=2", "E="};
  CHECK(variable(env, "A") == "1");
  CHECK(variable(env, "E").empty());
  CHECK(variable(env, "MISSING").empty());
  CHECK(variable({"A"}, "A").empty());
}

TEST_CASE("the interposer comes first in LD_PRELOAD, once", "[routerd]") {
  Environment env = {"A=1"};
  add_preload(env, "/run/lib.so");
  CHECK(env == Environment{"A=1", "LD_PRELOAD=/run/lib.so"});
  add_preload(env, "/run/lib.so");
  CHECK(env == Environment{"A=1", "LD_PRELOAD=/run/lib.so"});
  env = {"LD_PRELOAD=/usr/lib/other.so:/x.so"};
  add_preload(env, "/run/lib.so");
  CHECK(env == Environment{"LD_PRELOAD=/run/lib.so:/usr/lib/other.so:/x.so"});
}

TEST_CASE("a library whose name begins like the interposer's is not the interposer", "[routerd]") {
  Environment env = {"LD_PRELOAD=/run/lib.so.old"};
  add_preload(env, "/run/lib.so");
  CHECK(env == Environment{"LD_PRELOAD=/run/lib.so:/run/lib.so.old"});
}
