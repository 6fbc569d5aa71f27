#include "contexts/spec.h"

#include <catch2/catch.hpp>

using namespace contexts;

namespace {

ContextSpec valid() {
  ContextSpec spec;
  spec.name = "user";
  return spec;
}

/// Empty if valid; else the message, and errno must be EINVAL.
std::string wrong_with(const ContextSpec& spec) {
  const auto result = validate(spec);
  if (result) return {};
  CHECK(result.error().code == EINVAL);
  return result.error().message();
}

}  // namespace

TEST_CASE("context names are short, lower-case and not 'control'", "[contexts]") {
  for (const std::string name : {"a", "user", "user-2", "a_b", "u0"}) {
    CAPTURE(name);
    CHECK(is_valid_name(name));
  }
  CHECK(is_valid_name(std::string(32, 'a')));
  for (const std::string name : {"", "control", "User", "uSer", "2user", "-a", "_a", "a b", "a/b",
                                 "a.b", "..", "a\n", "\xc3\xa4"}) {
    CAPTURE(name);
    CHECK_FALSE(is_valid_name(name));
  }
  CHECK_FALSE(is_valid_name(std::string(33, 'a')));
  CHECK_FALSE(is_valid_name(std::string_view("a\0", 2)));
  CHECK(is_valid_name("control2"));
}

TEST_CASE("a spec with no more than a name is valid", "[contexts]") {
  CHECK(wrong_with(valid()).empty());
}

TEST_CASE("validate says which part of a spec is wrong", "[contexts]") {
  struct Row {
    void (*change)(ContextSpec&);
    const char* names;
  };
  const auto row = GENERATE(values<Row>({
      {[](ContextSpec& s) { s.name = "Bad"; }, "context name 'Bad'"},
      {[](ContextSpec& s) { s.name = ""; }, "context name ''"},
      {[](ContextSpec& s) { s.name = "control"; }, "and not 'control'"},
      {[](ContextSpec& s) { s.child_context = "user"; }, "routes its children to itself"},
      {[](ContextSpec& s) { s.child_context = "No"; }, "child_context 'No'"},
      {[](ContextSpec& s) { s.cwd = ""; }, "cwd ''"},
      {[](ContextSpec& s) { s.cwd = "work"; }, "cwd 'work'"},
      {[](ContextSpec& s) {
         s.share = {"/ok", "relative"};
       },
       "path 'relative'"},
      {[](ContextSpec& s) { s.hide = {""}; }, "path ''"},
      {[](ContextSpec& s) {
         s.env.pinned = {"A=1", "NOEQUALS"};
       },
       "environment entry 'NOEQUALS'"},
      {[](ContextSpec& s) { s.env.pinned = {"=value"}; }, "environment entry ''"},
      {[](ContextSpec& s) { s.env.pinned = {""}; }, "environment entry ''"},
      {[](ContextSpec& s) { s.env.pinned = {std::string("A=\0", 3)}; }, "environment entry 'A'"},
  }));
  ContextSpec spec = valid();
  row.change(spec);
  CHECK_THAT(wrong_with(spec), Catch::Contains(row.names));
}

TEST_CASE("validate takes what is right", "[contexts]") {
  ContextSpec spec = valid();
  spec.child_context = "other";
  spec.cwd = "/";
  spec.share = {"/a", "/"};
  spec.hide = {"/b"};
  spec.env.pinned = {"A=", "B=x=y", "C=\xff"};
  CHECK(wrong_with(spec).empty());
}

TEST_CASE("validate never repeats the value of a variable", "[contexts]") {
  ContextSpec spec = valid();
  spec.env.pinned = {std::string("KEY=hunter2\0x", 13)};
  CHECK_THAT(wrong_with(spec), !Catch::Contains("hunter2"));
}
