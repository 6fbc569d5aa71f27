#include "api/http.h"

#include <catch2/catch.hpp>

#include "api/guard.h"
#include "api/routes.h"

using api::Request;

TEST_CASE("a target is split and decoded", "[api]") {
  Request request;
  REQUIRE(api::read_target("/a%20b/c?x=1&y=%3D+z&flag", request));
  CHECK(request.path == "/a b/c");
  CHECK(request.query_value("x") == "1");
  CHECK(request.query_value("y") == "= z");
  CHECK(request.query.contains("flag"));
  for (const auto* bad : {"", "x", "http://a/", "/%", "/%4", "/%zz", "/%00", "/?a=%0"}) {
    CAPTURE(bad);
    Request other;
    CHECK_FALSE(api::read_target(bad, other));
  }
}

TEST_CASE("patterns match whole segments", "[api]") {
  const auto matched =
      api::match("/contexts/{context}/route:explain", "/contexts/a.b/route:explain");
  REQUIRE(matched);
  CHECK(matched->at("context") == "a.b");
  CHECK_FALSE(api::match("/contexts/{context}", "/contexts/"));
  CHECK_FALSE(api::match("/contexts/{context}", "/contexts/a/b"));
  CHECK_FALSE(api::match("/contexts/{context}/exec", "/contexts/a"));
  CHECK_FALSE(api::match("/contexts", "/contexts/"));
}

TEST_CASE("every route is found by its own method only", "[api]") {
  for (const auto& route : api::routes()) {
    std::map<std::string, std::string> params;
    std::vector<std::string> allowed;
    CAPTURE(route.pattern, route.method);
    CHECK(api::find_route(route.method, route.pattern, params, allowed) == &route);
    CHECK(api::find_route("TRACE", route.pattern, params, allowed) == nullptr);
    CHECK_FALSE(allowed.empty());
  }
}

TEST_CASE("hosts and origins are those of the configuration", "[api]") {
  const api::GuardRules rules{{"Api.example"}, {"https://app.example"}};
  struct Case {
    const char* host;
    const char* origin;
    bool is_allowed;
  };
  const auto [host, origin, is_allowed] = GENERATE(values<Case>({
      {"localhost", "", true},
      {"LOCALHOST:8080", "", true},
      {"127.0.0.1", "", true},
      {"[::1]:8080", "", true},
      {"api.example:1", "", true},
      {"", "", false},
      {"api.example.evil.example", "", false},
      {"127.0.0.1.evil.example", "", false},
      {"evil.example", "", false},
      {"localhost", "https://app.example", true},
      {"localhost", "http://app.example", false},
      {"localhost", "https://app.example.evil", false},
      {"localhost", "null", false},
  }));
  Request request;
  request.headers = {{"host", host}};
  if (*origin != '\0') request.headers["origin"] = origin;
  CAPTURE(host, origin);
  CHECK(!api::check_origin(request, rules) == is_allowed);
  CHECK(api::cors_headers(origin, rules).empty() == (!is_allowed || *origin == '\0'));
}

TEST_CASE("what may be a request's id, and a trace", "[api]") {
  CHECK(api::is_request_id("aZ09._:-"));
  CHECK(api::is_request_id(std::string(128, 'x')));
  for (const char* bad : {"", " ", "a b", "a\n", "a/b", "\"", "\xc3\xa4"}) {
    CHECK_FALSE(api::is_request_id(bad));
  }
  CHECK_FALSE(api::is_request_id(std::string(129, 'x')));
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  CHECK(api::is_traceparent(trace));
  CHECK_FALSE(api::is_traceparent(trace + "0"));
  CHECK_FALSE(api::is_traceparent("01" + trace.substr(2)));
  CHECK_FALSE(api::is_traceparent("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  CHECK_FALSE(api::is_traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  CHECK_FALSE(api::is_traceparent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
}
