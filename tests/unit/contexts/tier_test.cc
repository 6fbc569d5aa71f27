#include "contexts/tier.h"

#include <catch2/catch.hpp>

using namespace contexts;

TEST_CASE("every tier is parsed from its own name", "[contexts]") {
  for (const Tier tier : {Tier::namespaces, Tier::userns, Tier::uids, Tier::landlock, Tier::none}) {
    CHECK(parse_tier(name_of(tier)) == tier);
  }
  CHECK(name_of(Tier::namespaces) == "namespaces");
  CHECK(name_of(Tier::none) == "none");
}

TEST_CASE("what is no tier's name is no tier", "[contexts]") {
  for (const auto* name : {"", "Namespaces", "namespace", "none ", "isolated", "0"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_tier(name));
  }
}

TEST_CASE("only tiers with a PID namespace are isolated", "[contexts]") {
  CHECK(is_isolated(Tier::namespaces));
  CHECK(is_isolated(Tier::userns));
  CHECK_FALSE(is_isolated(Tier::uids));
  CHECK_FALSE(is_isolated(Tier::landlock));
  CHECK_FALSE(is_isolated(Tier::none));
}

TEST_CASE("stronger tiers have smaller numbers, which travel in Setup", "[contexts]") {
  CHECK(static_cast<int>(Tier::namespaces) == 0);
  CHECK(static_cast<int>(Tier::userns) == 1);
  CHECK(static_cast<int>(Tier::uids) == 2);
  CHECK(static_cast<int>(Tier::landlock) == 3);
  CHECK(static_cast<int>(Tier::none) == 4);
}
