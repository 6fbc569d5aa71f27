#include "contexts/shell/loop_script.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace contexts::shell;
using namespace std::string_literals;

namespace {

std::vector<std::string> names(const wire::StringList& list) { return list.strings(); }

}  // namespace

TEST_CASE("a quoted word is printable ASCII on one line, whatever is in it", "[shell]") {
  CHECK(quoted("") == "$''");
  CHECK(quoted("it's \\ \n\t\x01\x7f\xe4\xff") == R"($'it\'s \\ \n\011\001\177\344\377')");
  CHECK(quoted("1\0012"s) == R"($'1\0012')");
}

TEST_CASE("names of variables are told from others", "[shell]") {
  for (const char* name : {"A", "_", "a1_B"}) CHECK(is_shell_name(name));
  for (const char* name : {"", "1A", "A-B", "A.B", "A B", "\xc3\xa4", "A[0]"}) {
    CAPTURE(name);
    CHECK_FALSE(is_shell_name(name));
  }
}

TEST_CASE("a command is two lines, with nothing of others as it came", "[shell]") {
  CommandText text;
  text.set = {"A=x\n; rm", "no-name=1"};
  text.unset = {"B", "also no name"};
  text.scoped = {"C=c\nd"};
  text.folder = "/a\nb";
  text.scoped_folder = "/c'd";
  text.command = "echo\n'x' >&2\n";
  LoopState last{42, true, "trap -- 'y' ERR\n", "trap -- 'x' DEBUG\n",
                 "builtin () \n{ \n    :\n}\n"};
  const auto script = command_script("NONCE", text, last);
  CHECK(std::count(script.begin(), script.end(), '\n') == 2);
  CHECK(script.ends_with("\n"));
  CHECK(script.find("export A=$'x\\n; rm' ||") != std::string::npos);
  CHECK(script.find("unset -v B ||") != std::string::npos);
  CHECK(script.find("name=1") == std::string::npos);
  CHECK(script.find("no name") == std::string::npos);
  CHECK(script.find("(\\builtin exit 42)") != std::string::npos);
  CHECK(script.find(quoted(
            "\\builtin trap -- 'y' ERR\n(\\builtin exit 42) && \\builtin :; \n\\builtin set -x\n"
            "\\builtin trap -- 'x' DEBUG\nfunction builtin () \n{ \n    :\n}\necho\n'x' >&2\n")) !=
        std::string::npos);
}

TEST_CASE("what bash says is taken up to the nonce, whole or not at all", "[shell]") {
  std::string heard = "one\0two\0"s;
  CHECK_FALSE(take_fields(heard, "N"));
  heard += "\0N"s;
  CHECK_FALSE(take_fields(heard, "N"));
  heard += "\0rest"s;
  const auto fields = take_fields(heard, "N");
  REQUIRE(fields);
  CHECK(*fields == std::vector<std::string>{"one", "two", ""});
  CHECK(heard == "rest");
}

TEST_CASE("fields mean something only if they are as many as they should be", "[shell]") {
  CHECK_FALSE(begun_of({"/", "x"}));
  CHECK(begun_of({"/", "x", "y"})->declared == "y");
  CHECK_FALSE(finished_of({"", "1", "", "", ""}));
  const auto finished = finished_of({"garbage", "300", "huB", "also garbage", "", "e"});
  REQUIRE(finished);
  CHECK(finished->state.own_builtin.empty());
  CHECK(finished->state.debug_trap.empty());
  CHECK_FALSE(finished->state.is_traced);
  CHECK(finished->state.status == (300 & 0xff));
  const auto all =
      finished_of({"builtin () x", "0", "hxB", "trap -- '' DEBUG", "trap -- '' ERR", ""});
  CHECK(all->state.own_builtin == "builtin () x");
  CHECK(all->state.is_traced);
  CHECK(all->state.debug_trap == "trap -- '' DEBUG");
  CHECK(all->state.error_trap == "trap -- '' ERR");
}

TEST_CASE("changed names are those with another value, however values look", "[shell]") {
  const std::string before =
      "declare -x A=\"1\"\ndeclare -x B=\"a\ndeclare -x X=\\\"\nb\"\ndeclare -x GONE\n"
      "declare -irx N=\"5\"\ndeclare -x Q=$'it\\'s\\n'\n";
  CHECK(names(changed_names(before, before, {})).empty());
  const std::string after =
      "declare -x A=\"2\"\ndeclare -x B=\"a\ndeclare -x X=\\\"\nc\"\ndeclare -x NEW=\"\"\n"
      "declare -irx N=\"5\"\ndeclare -x Q=$'it\\'s\\n'\n";
  CHECK(names(changed_names(before, after, {})) ==
        std::vector<std::string>{"A", "B", "GONE", "NEW"});
  CHECK(names(changed_names(before, after, {"A=1", "NEW"})) ==
        std::vector<std::string>{"B", "GONE"});
  // In POSIX mode; and what is cut off is no reason to hang.
  CHECK(names(changed_names("", "export A=\"1\"\nexport B=\"", {})) ==
        std::vector<std::string>{"A", "B"});
}

TEST_CASE("what was for one command is undone in bash's own words", "[shell]") {
  CommandText text;
  CHECK(restore_script(text, {}).empty());
  text.scoped = {"A=1", "B=2"};
  text.scoped_folder = "/tmp";
  const auto script = restore_script(text, {"/usr", "", "declare -- B=\"old\"\n"});
  CHECK(script.find("cd -- $'/usr'") < script.find("unset -v A"));
  CHECK(script.find("unset -v B") < script.find(quoted("declare -- B=\"old\"\n")));
  CHECK(std::count(script.begin(), script.end(), '\n') == 1);
}
