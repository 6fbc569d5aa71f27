#include "api/tokens.h"

#include <catch2/catch.hpp>

using api::Scope;
using api::Tokens;

namespace {

// Of "abc", "test" and "".
constexpr const char* kFile = R"({"tokens": [
  {"name": "a", "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "scope": "admin"},
  {"name": "b", "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "scope": "exec",
   "contexts": ["user", "ws-*"]},
  {"name": "empty", "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "scope": "admin"}
]})";

}  // namespace

TEST_CASE("a secret finds its token, and no other does", "[api]") {
  const auto tokens = Tokens::parse(kFile);
  REQUIRE(tokens);
  CHECK(tokens->count() == 3);
  REQUIRE(tokens->find("abc"));
  CHECK(tokens->find("abc")->name == "a");
  CHECK_FALSE(tokens->find("abcd"));
  CHECK_FALSE(tokens->find(""));
  CHECK_FALSE(tokens->find("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST_CASE("a token reaches its contexts with its scope", "[api]") {
  const auto tokens = Tokens::parse(kFile);
  REQUIRE(tokens);
  const auto all = tokens->find("abc");
  const auto some = tokens->find("test");
  CHECK(all->reaches_all());
  CHECK(all->may(Scope::admin));
  CHECK_FALSE(some->reaches_all());
  CHECK(some->may(Scope::read));
  CHECK(some->may(Scope::exec));
  CHECK_FALSE(some->may(Scope::admin));
  CHECK(some->reaches("ws-1"));
  CHECK(some->reaches("user"));
  CHECK_FALSE(some->reaches("user2"));
  CHECK_FALSE(some->reaches("platform"));
}

TEST_CASE("a file with a mistake has no tokens", "[api]") {
  const std::string hash(64, '0');
  const auto one = [](const std::string& token) { return "{\"tokens\": [" + token + "]}"; };
  CHECK(Tokens::parse(one(R"({"name": "a", "scope": "read", "sha256": ")" + hash + "\"}")));
  CHECK(Tokens::parse(""));
  const std::string bad[] = {
      "x",
      "[]",
      "{}",
      R"({"tokens": {}})",
      R"({"tokens": [], "more": 1})",
      one("1"),
      one(R"({"name": "a", "scope": "read", "sha256": "00"})"),
      one(R"({"name": "context:user", "scope": "read", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "from": [], "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "from": "outside", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "local": true, "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "from": ["user"], "local": 1, "sha256": ")" + hash +
          "\"}"),
      one(R"({"name": "a", "scope": "all", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "", "scope": "read", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "token": "plain", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "contexts": "user", "sha256": ")" + hash + "\"}"),
      one(R"({"name": "a", "scope": "read", "contexts": [1], "sha256": ")" + hash + "\"}")};
  for (const auto& text : bad) {
    CAPTURE(text);
    const auto tokens = Tokens::parse(text);
    REQUIRE_FALSE(tokens);
    CHECK(tokens.error().message().find(hash) == std::string::npos);
  }
}

TEST_CASE("the secret is what follows Bearer", "[api]") {
  CHECK(api::bearer_of("Bearer abc") == "abc");
  CHECK(api::bearer_of("bearer  abc") == "abc");
  for (const auto* none : {"", "Bearer", "Bearer ", "Basic abc", "abc"})
    CHECK(api::bearer_of(none).empty());
}

TEST_CASE("a token may be bound to places", "[api]") {
  const auto tokens = Tokens::parse(
      R"({"tokens": [{"name": "a", "scope": "admin", "from": ["outside", "ws-*"],
          "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
         {"name": "b", "scope": "read", "from": ["*"], "local": true,
          "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
         {"name": "c", "scope": "read",
          "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b856"}]})");
  REQUIRE(tokens);
  const auto some = tokens->find("abc");
  CHECK(some->is_bound());
  CHECK(some->may_come_from_outside());
  CHECK(some->may_come_from("ws-1"));
  CHECK_FALSE(some->may_come_from("user"));
  // A context of that name is not what is meant.
  CHECK_FALSE(some->may_come_from("outside"));
  CHECK_FALSE(some->is_local);
  const auto any = tokens->find("test");
  CHECK(any->may_come_from("user"));
  CHECK_FALSE(any->may_come_from_outside());
  CHECK(any->is_local);
}

TEST_CASE("a context's own token is for nothing else", "[api]") {
  const auto own = api::token_of_context("user");
  CHECK(own->reaches("user"));
  CHECK_FALSE(own->reaches("user2"));
  CHECK_FALSE(own->reaches_all());
  CHECK_FALSE(own->may(Scope::admin));
  CHECK_FALSE(own->is_bound());
}
