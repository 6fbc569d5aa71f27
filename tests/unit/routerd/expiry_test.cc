#include "routerd/expiry.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace routerd;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

const Expiry::Time kStart{1h};

bool is(const char* reason, std::string_view wanted) {
  return reason != nullptr && reason == wanted;
}

}  // namespace

TEST_CASE("without a lifespan there is no end", "[routerd][expiry]") {
  Expiry expiry(kStart);
  CHECK(expiry.reason_to_end(kStart + 1000h) == nullptr);
  CHECK_FALSE(expiry.rest(kStart));
  CHECK_FALSE(expiry.ttl_left(kStart));
  CHECK_FALSE(expiry.idle_left(kStart));
}

TEST_CASE("a time to live counts from when it was set", "[routerd][expiry]") {
  Expiry expiry(kStart);
  expiry.set({.ttl_ms = 1000}, kStart + 5s);
  CHECK(expiry.ttl_left(kStart + 5200ms) == 800ms);
  CHECK(expiry.rest(kStart + 5200ms) == 800ms);
  expiry.use(kStart + 5900ms);  // changes nothing
  CHECK(expiry.reason_to_end(kStart + 5999ms) == nullptr);
  CHECK(is(expiry.reason_to_end(kStart + 6s), "ttl"));
  CHECK(expiry.ttl_left(kStart + 9s) == 0ms);
  expiry.set({.ttl_ms = 1000, .idle_timeout_ms = 60000}, kStart + 5500ms);
  CHECK(expiry.ttl_left(kStart + 5500ms) == 500ms);  // the same is not counted anew
  expiry.set({.ttl_ms = 2000}, kStart + 5500ms);
  CHECK(expiry.ttl_left(kStart + 5500ms) == 2s);
}

TEST_CASE("an idle timeout counts from the last use", "[routerd][expiry]") {
  Expiry expiry(kStart);
  expiry.set({.idle_timeout_ms = 1000}, kStart);
  CHECK(expiry.rest(kStart) == 100ms);
  expiry.use(kStart + 900ms);
  CHECK(expiry.reason_to_end(kStart + 1500ms) == nullptr);
  CHECK(expiry.idle_left(kStart + 1500ms) == 400ms);
  CHECK(expiry.rest(kStart + 1850ms) == 50ms);
  CHECK(is(expiry.reason_to_end(kStart + 1900ms), "idle"));
  expiry.set({.idle_timeout_ms = 3600'000}, kStart);
  CHECK(expiry.rest(kStart) == 5s);
}

TEST_CASE("lifespans are read from JSON and taken out of it", "[routerd][expiry]") {
  json body = {{"name", "x"}, {"ttlMs", 5u}, {"idleTimeoutMs", nullptr}};
  Lifespan lifespan{.ttl_ms = 1, .idle_timeout_ms = 2};
  REQUIRE(take_lifespan(body, lifespan));
  CHECK(lifespan == Lifespan{.ttl_ms = 5, .idle_timeout_ms = 0});
  CHECK(body == json{{"name", "x"}});
  REQUIRE(take_lifespan(body, lifespan));
  CHECK(lifespan.ttl_ms == 5);
  for (const json& wrong :
       {json(0), json(-1), json(1.5), json("5"), json(1ull << 60), json(true)}) {
    json bad = {{"ttlMs", wrong}};
    const auto taken = take_lifespan(bad, lifespan);
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == EINVAL);
  }
}
