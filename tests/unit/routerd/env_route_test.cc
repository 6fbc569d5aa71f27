// EnvRoute: translating environments, and that the kept answer is never a wrong one.

#include "routerd/env_route.h"

#include <catch2/catch.hpp>

using routerd::EnvRoute;

namespace {

EnvRoute make_route() {
  contexts::EnvPolicy policy;
  policy.pinned = {"PINNED=yes"};
  const contexts::Environment start = {"PATH=/bin", "PLATFORM_KEY=0123456789"};
  return EnvRoute({start, start, contexts::EnvPolicy::Base::inherit}, policy);
}

std::vector<std::string> names_and_values(const EnvRoute::Answer& answer) {
  auto entries = answer.env.strings();
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

TEST_CASE("a child's environment is filtered, changed names arrive, pinned ones are added",
          "[routerd]") {
  auto route = make_route();
  const auto& answer = route.translate({"PATH=/bin", "PLATFORM_KEY=0123456789", "TZ=UTC"});
  CHECK(names_and_values(answer) == std::vector<std::string>{"PATH=/bin", "PINNED=yes", "TZ=UTC"});
  REQUIRE(answer.blocked.size() == 1);
  CHECK(answer.blocked.front().starts_with("PLATFORM_KEY: "));
}

TEST_CASE("the same environment gives the same answer, another one another", "[routerd]") {
  auto route = make_route();
  const wire::StringList with_zone = {"PATH=/bin", "TZ=UTC"};
  const wire::StringList moved = {"PATH=/bin", "TZ=CET"};
  const auto first = route.translate(with_zone).env;
  CHECK(route.translate(with_zone).env == first);
  CHECK_FALSE(route.translate(moved).env == first);
  CHECK(route.translate(with_zone).env == first);
  CHECK(names_and_values(route.translate({})) == std::vector<std::string>{"PINNED=yes"});
}

TEST_CASE("an empty environment is translated too, also as the first one", "[routerd]") {
  auto route = make_route();
  CHECK(names_and_values(route.translate({})) == std::vector<std::string>{"PINNED=yes"});
}
