#include "contexts/probe.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using contexts::Tier;

TEST_CASE("the strongest tier is found by trying", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const auto runtime = contexts::RuntimeDir::open(folder / "r");
  REQUIRE(runtime);
  std::vector<std::string> reasons;
  CHECK(contexts::probe_tier(*runtime, support::programs_folder(), reasons).tier ==
        Tier::namespaces);
  CHECK(reasons.empty());
  CHECK_FALSE(std::filesystem::exists(runtime->view("probe")));
  for (const Tier tier : {Tier::userns, Tier::uids, Tier::landlock}) {
    CAPTURE(contexts::name_of(tier));
    CHECK(contexts::probe_one(tier, *runtime, support::programs_folder()));
  }
}

TEST_CASE("every tier that fails leaves its reason", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  const auto runtime = contexts::RuntimeDir::open(folder / "r");
  REQUIRE(runtime);
  std::vector<std::string> reasons;
  CHECK(contexts::probe_tier(*runtime, "/does/not/exist", reasons).tier == Tier::none);
  REQUIRE(reasons.size() == 4);
  CHECK(reasons[0].starts_with("namespaces: "));
  CHECK(reasons[1].starts_with("userns: "));
  CHECK(reasons[2].starts_with("uids: "));
  CHECK(reasons[3].starts_with("landlock: "));
}

TEST_CASE("an overlay is found by trying, in the tier that has one", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const auto runtime = contexts::RuntimeDir::open(folder / "r");
  REQUIRE(runtime);
  const auto offer =
      contexts::probe_overlay(Tier::namespaces, *runtime, support::programs_folder());
  CHECK(offer.works);
  CHECK_FALSE(std::filesystem::exists(runtime->upper("probe")));
  const auto refused = contexts::probe_overlay(Tier::userns, *runtime, support::programs_folder());
  CHECK_FALSE(refused.works);
  CHECK(refused.remark.find("needs the tier namespaces") != std::string::npos);
}
