#include "api/rate.h"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace {

const api::Rate::Time kStart{1h};

}  // namespace

TEST_CASE("a client has twice its rate at once, and its rate in the long run", "[api][rate]") {
  api::Rate rate(5);
  for (int i = 0; i < 10; ++i) CHECK(rate.take("a", kStart));
  CHECK_FALSE(rate.take("a", kStart));
  CHECK(rate.take("b", kStart));
  CHECK_FALSE(rate.take("a", kStart + 199ms));
  CHECK(rate.take("a", kStart + 201ms));
  CHECK_FALSE(rate.take("a", kStart + 202ms));
  int taken = 0;
  for (int ms = 1000; ms < 11000; ++ms) taken += rate.take("a", kStart + ms * 1ms) ? 1 : 0;
  CHECK(taken >= 53);
  CHECK(taken <= 55);
}

TEST_CASE("a clock that stands still gives nothing", "[api][rate]") {
  api::Rate rate(1);
  CHECK(rate.take("a", kStart));
  CHECK(rate.take("a", kStart));
  CHECK_FALSE(rate.take("a", kStart - 1h));
}

TEST_CASE("many clients are forgotten, the one that just asked is not", "[api][rate]") {
  api::Rate rate(1);
  for (int i = 0; i < 20000; ++i) {
    REQUIRE(rate.take("client" + std::to_string(i), kStart + i * 1us));
  }
  CHECK(rate.take("client19999", kStart + 20000us));
  CHECK_FALSE(rate.take("client19999", kStart + 20000us));
}
