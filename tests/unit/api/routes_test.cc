#include "api/routes.h"

#include <catch2/catch.hpp>
#include <set>

using api::match;
using Params = std::map<std::string, std::string>;

TEST_CASE("patterns match whole paths", "[api][routes]") {
  CHECK(match("/a/{x}/b", "/a/1/b") == Params{{"x", "1"}});
  CHECK(match("/a/{x}", "/a/one two") == Params{{"x", "one two"}});
  for (const char* wrong : {"/a//b", "/a/1/b/", "/a/1", "/a/1/c", "/a/1/2/b", ""}) {
    CHECK_FALSE(match("/a/{x}/b", wrong));
  }
}

TEST_CASE("a word after ':' says what is to be done", "[api][routes]") {
  CHECK(match("/s/{shell}:reset", "/s/default:reset") == Params{{"shell", "default"}});
  CHECK(match("/s/{shell}:reset", "/s/a:b:reset") == Params{{"shell", "a:b"}});
  for (const char* wrong :
       {"/s/default", "/s/:reset", "/s/default:reset/", "/s/default:interrupt"}) {
    CHECK_FALSE(match("/s/{shell}:reset", wrong));
  }
}

TEST_CASE("each operation has its own name and address", "[api][routes]") {
  std::set<std::string> operations, addresses;
  for (const auto& route : api::routes()) {
    CHECK(operations.insert(route.operation).second);
    CHECK(addresses.insert(std::string(route.method) + " " + route.pattern).second);
  }
}
