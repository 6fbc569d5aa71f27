#include "api/idempotency.h"

#include <catch2/catch.hpp>

using api::Idempotency;
using Found = Idempotency::Found;

TEST_CASE("the same request is done once", "[api][idempotency]") {
  Idempotency store;
  CHECK(store.begin("a", "hash", 0) == Found::nothing);
  CHECK(store.begin("a", "hash", 1) == Found::going_on);
  CHECK(store.begin("a", "other", 1) == Found::other);
  store.keep_exec("a", "exec_1");
  CHECK(store.begin("a", "hash", 2) == Found::exec);
  CHECK(store.exec("a") == "exec_1");
  CHECK(store.begin("b", "hash", 2) == Found::nothing);
  api::Response response;
  response.status = 201;
  store.keep_response("b", response);
  CHECK(store.begin("b", "hash", 3) == Found::answered);
  CHECK(store.response("b").status == 201);
}

TEST_CASE("what was not done may be tried again", "[api][idempotency]") {
  Idempotency store;
  CHECK(store.begin("a", "hash", 0) == Found::nothing);
  store.drop("a");
  CHECK(store.begin("a", "other", 0) == Found::nothing);
  // Of requests without a key nothing is known.
  store.drop("");
  store.keep_exec("", "exec_1");
}

TEST_CASE("keys are forgotten after a day, or when there are too many", "[api][idempotency]") {
  Idempotency store;
  CHECK(store.begin("a", "hash", 0) == Found::nothing);
  store.keep_exec("a", "exec_1");
  CHECK(store.begin("a", "hash", Idempotency::kLongestMs) == Found::exec);
  CHECK(store.begin("a", "hash", Idempotency::kLongestMs + 1) == Found::nothing);
  for (std::size_t i = 1; i < Idempotency::kMost; ++i) {
    REQUIRE(store.begin("key" + std::to_string(i), "hash", 1) == Found::nothing);
  }
  CHECK(store.begin("one more", "hash", 1) == Found::too_many);  // all of them are going on
  store.keep_exec("key7", "exec_7");
  CHECK(store.begin("one more", "hash", 1) == Found::nothing);
  CHECK(store.begin("key8", "hash", 1) == Found::going_on);
  CHECK(store.begin("key7", "hash", 1) == Found::too_many);
}

TEST_CASE("what an earlier process has started is known", "[api][idempotency]") {
  Idempotency store;
  store.adopt("", "", "exec_0", 5);
  store.adopt("a", "hash", "exec_1", 5);
  CHECK(store.begin("a", "hash", 6) == Found::exec);
  CHECK(store.exec("a") == "exec_1");
}
