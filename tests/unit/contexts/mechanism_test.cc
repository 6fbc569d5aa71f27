#include "contexts/mechanism.h"

#include <catch2/catch.hpp>

using contexts::Enforce;
using contexts::Mechanism;

TEST_CASE("every mechanism is found by its name, and auto is none of them", "[contexts]") {
  for (const Mechanism mechanism : contexts::kMechanisms) {
    CHECK(contexts::parse_enforce(contexts::name_of(mechanism)) == Enforce{mechanism});
  }
  REQUIRE(contexts::parse_enforce("auto"));
  CHECK_FALSE(contexts::parse_enforce("auto")->has_value());
  CHECK(contexts::name_of(Enforce{}) == "auto");
  for (const char* word : {"", "Farm", "farm ", "none"}) CHECK_FALSE(contexts::parse_enforce(word));
}
