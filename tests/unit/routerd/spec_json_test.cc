#include "routerd/spec_json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using contexts::ContextSpec;
using contexts::Isolation;
using contexts::RouteChild;
using nlohmann::json;

namespace {

ContextSpec parsed(const char* text) {
  auto spec = routerd::spec_from_json(json::parse(text));
  if (!spec) FAIL(spec.error().message());
  return *spec;
}

std::string changed(ContextSpec& spec, const char* text) {
  const auto result = routerd::change_spec(spec, json::parse(text));
  return result ? "" : result.error().message();
}

}  // namespace

TEST_CASE("a spec with a name alone has the defaults", "[routerd]") {
  const auto spec = parsed(R"({"name": "user"})");
  CHECK(spec.name == "user");
  CHECK(spec.cwd == "/workspace");
  CHECK(spec.child_context.empty());
  CHECK(spec.isolation == Isolation::secure);
  CHECK(spec.route_child == RouteChild::never);
  CHECK(spec.env.pinned.empty());
  CHECK_FALSE(spec.is_platform);
}

TEST_CASE("every field of a spec arrives", "[routerd]") {
  const auto spec = parsed(R"({"name": "a", "cwd": "/work", "childContext": "b",
    "routeChild": "auto", "enforce": "farm", "isolation": "none", "user": "node", "env": {"A": "1", "B": ""},
    "share": ["/x"], "hide": ["/y", "/z"]})");
  CHECK(spec.cwd == "/work");
  CHECK(spec.child_context == "b");
  CHECK(spec.route_child == RouteChild::automatic);
  CHECK(spec.isolation == Isolation::none);
  CHECK(spec.enforce == contexts::Mechanism::farm);
  CHECK(spec.user == "node");
  CHECK(spec.env.pinned == std::vector<std::string>{"A=1", "B="});
  CHECK(spec.share == std::vector<std::string>{"/x"});
  CHECK(spec.hide == std::vector<std::string>{"/y", "/z"});
}

TEST_CASE("children are routed when a child context is given and nothing said", "[routerd]") {
  CHECK(parsed(R"({"name": "a", "childContext": "b"})").route_child == RouteChild::always);
  CHECK(parsed(R"({"name": "a", "childContext": "b", "routeChild": "never"})").route_child ==
        RouteChild::never);
}

TEST_CASE("a wrong spec names the field and what was expected", "[routerd]") {
  struct Row {
    const char* text;
    int code;
    const char* says;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"nmae": "a"})", EINVAL, "unknown field 'nmae'"},
      {R"({"name": "a", "isolation": "weak"})", EINVAL, "expected secure, strict, none"},
      {R"({"name": "a", "rootfs": "own"})", EINVAL, "expected auto, overlay, shared"},
      {R"({"name": "a", "limits": []})", EINVAL, "expected an object of numbers"},
      {R"({"name": "a", "limits": {"disk": 1}})", EINVAL, "unknown limit 'disk'"},
      {R"({"name": "a", "limits": {"pids": -1}})", EINVAL, "limit pids"},
      {R"({"name": "a", "routeChild": "maybe"})", EINVAL, "expected auto, always, never"},
      {R"({"name": "a", "enforce": "wall"})", EINVAL, "expected auto, preload, farm"},
      {R"({"name": "a", "env": {"": "x"}})", EINVAL, "env name ''"},
      {R"({"name": "a", "env": {"A=B": "x"}})", EINVAL, "env name 'A=B'"},
      {R"({"name": "a", "env": {"A\u0000B": "x"}})", EINVAL, "env name"},
      {R"({"name": "a", "env": {"A": 1}})", EINVAL, "env A"},
      {R"({"name": "a", "env": {"A": ["x"]}})", EINVAL, "expected a string or null"},
  }));
  CAPTURE(row.text);
  const auto spec = routerd::spec_from_json(json::parse(row.text));
  REQUIRE_FALSE(spec);
  CHECK(spec.error().code == row.code);
  CHECK_THAT(spec.error().message(), Catch::Contains(row.says));
}

namespace {

/// Refused as an Error, or by the json::exception that the control socket's handler answers.
bool is_refused(const char* text) {
  try {
    return !routerd::spec_from_json(json::parse(text));
  } catch (const json::exception&) {
    return true;
  }
}

}  // namespace

TEST_CASE("a field of the wrong type is refused", "[routerd]") {
  CHECK(is_refused(R"({"name": 1})"));
  CHECK(is_refused(R"({"name": "a", "share": "x"})"));
  CHECK(is_refused(R"({"name": "a", "share": [1]})"));
  CHECK(is_refused(R"({"name": "a", "isolation": true})"));
  CHECK(is_refused(R"({"name": "a", "env": "A=1"})"));
  CHECK(is_refused("null"));
  CHECK(is_refused("[1]"));
  CHECK_FALSE(is_refused(R"({"name": "a"})"));
}

TEST_CASE("an env that is a list is refused, not taken for numbered variables", "[routerd]") {
  CHECK(is_refused(R"({"name": "a", "env": ["A=1"]})"));
}

TEST_CASE("a null in env pins nothing", "[routerd]") {
  CHECK(parsed(R"({"name": "a", "env": {"A": null}})").env.pinned.empty());
}

TEST_CASE("clients see a spec without the values of its variables", "[routerd]") {
  auto spec = parsed(R"({"name": "a", "childContext": "b", "env": {"KEY": "hunter2"}})");
  spec.env.secrets = {"hunter3hunter3"};
  const auto seen = routerd::to_json(spec);
  CHECK(seen == json::parse(R"({"name": "a", "cwd": "/workspace", "childContext": "b",
    "routeChild": "always", "enforce": "auto", "isolation": "secure", "envNames": ["KEY"], "user": "", "persistent": true, "home": "",
    "rootfs": "auto",
    "share": [], "hide": [], "protect": []})"));
  CHECK_THAT(seen.dump(), !Catch::Contains("hunter"));
}

TEST_CASE("env, cwd and child context of a living context can change", "[routerd]") {
  auto spec = parsed(R"({"name": "a", "childContext": "b", "env": {"A": "1", "B": "2"}})");
  CHECK(changed(spec, R"({"env": {"A": "new", "B": null, "C": "3"}, "cwd": "/x",
                          "childContext": "c"})")
            .empty());
  CHECK(spec.env.pinned == std::vector<std::string>{"A=new", "C=3"});
  CHECK(spec.cwd == "/x");
  CHECK(spec.child_context == "c");
  CHECK(changed(spec, "{}").empty());
}

TEST_CASE("a change that is wrong changes nothing", "[routerd]") {
  struct Row {
    const char* changes;
    const char* says;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"cwd": "/ok", "name": "x"})", "only env, cwd, persistent and childContext can change"},
      {R"({"cwd": "relative"})", "expected an absolute path"},
      {R"({"cwd": "/ok", "env": {"A": 1}})", "env A"},
      {R"({"cwd": "/ok", "env": {"=": "x"}})", "env name"},
      {R"({"env": {"A": "x\u0000y"}})", "without NUL"},
      {R"({"childContext": "a"})", "routes its children to itself"},
      {R"({"childContext": "Bad Name"})", "not a context name"},
  }));
  CAPTURE(row.changes);
  auto spec = parsed(R"({"name": "a", "childContext": "b", "env": {"A": "1"}})");
  CHECK_THAT(changed(spec, row.changes), Catch::Contains(row.says));
  CHECK(spec.cwd == "/workspace");
  CHECK(spec.child_context == "b");
  CHECK(spec.env.pinned == std::vector<std::string>{"A=1"});
}

TEST_CASE("a context without a router gets no child context later", "[routerd]") {
  auto spec = parsed(R"({"name": "a"})");
  CHECK_THAT(changed(spec, R"({"childContext": "b"})"), Catch::Contains("make it anew"));
}
