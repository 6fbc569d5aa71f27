#include "routerd/enforcement.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using contexts::Enforce;
using contexts::Mechanism;
using routerd::Offer;
using routerd::Offers;

namespace {

/// Offers in which those of `works` work and the others have a reason not to.
Offers offers(std::initializer_list<Mechanism> works) {
  Offers all;
  for (const Mechanism mechanism : contexts::kMechanisms) {
    const bool is_there = std::find(works.begin(), works.end(), mechanism) != works.end();
    all.push_back(
        {mechanism, is_there ? "" : "why-" + std::string(contexts::name_of(mechanism)), {}});
  }
  return all;
}

std::string chosen(Enforce wanted, const Offers& all, bool is_static, bool development = false) {
  const auto offer = routerd::choose_mechanism(wanted, all, is_static, development);
  return offer ? std::string(contexts::name_of(offer->mechanism)) : offer.error().message();
}

}  // namespace

TEST_CASE("auto takes the best mechanism for the kind of agent", "[routerd]") {
  struct Row {
    Offers all;
    const char* dynamic;
    const char* of_static;
  };
  using enum Mechanism;
  const Row rows[] = {
      {offers({preload, farm, binfmt, ptrace}), "farm", "binfmt"},
      {offers({preload, farm, ptrace}), "farm", "farm"},
      {offers({preload, binfmt}), "preload", "binfmt"},
      {offers({preload, ptrace}), "preload", "ptrace"},
  };
  for (const Row& row : rows) {
    CHECK(chosen({}, row.all, false) == row.dynamic);
    CHECK(chosen({}, row.all, true) == row.of_static);
  }
}

TEST_CASE("a static agent that nothing can route is refused, with every reason", "[routerd]") {
  const auto all = offers({Mechanism::preload});
  const std::string refusal = chosen({}, all, true);
  for (const char* reason : {"why-binfmt", "why-farm", "why-ptrace"}) {
    CHECK_THAT(refusal, Catch::Contains(reason));
  }
  CHECK(chosen({}, all, true, true) == "preload");
}

TEST_CASE("what is asked for is taken or refused, never replaced", "[routerd]") {
  const auto all = offers({Mechanism::preload, Mechanism::farm});
  CHECK(chosen(Mechanism::preload, all, false) == "preload");
  CHECK(chosen(Mechanism::farm, all, true) == "farm");
  CHECK_THAT(chosen(Mechanism::binfmt, all, false), Catch::Contains("why-binfmt"));
  CHECK_THAT(chosen(Mechanism::preload, all, true), Catch::Contains("statically linked"));
}

TEST_CASE("a context tells what each kind of agent gets", "[routerd]") {
  const auto told = routerd::enforcement_json({}, offers({Mechanism::preload}));
  CHECK(told["wanted"] == "auto");
  CHECK(told["dynamic"] == "preload");
  CHECK(told["static"].is_null());
  CHECK(told["mechanisms"].size() == 4);
  CHECK(told["mechanisms"][1]["reason"] == "why-farm");
}
