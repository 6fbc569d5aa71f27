#include "wire/string_list.h"

#include <catch2/catch.hpp>

using wire::StringList;

TEST_CASE("a StringList keeps strings as they are, in order", "[wire]") {
  const StringList list = {"a", "", "NO EQUALS", "A=1", "A=2", "\xff\n"};
  CHECK(list.count() == 6);
  CHECK_FALSE(list.empty());
  CHECK(list.strings() == std::vector<std::string>{"a", "", "NO EQUALS", "A=1", "A=2", "\xff\n"});
  CHECK(list.views().back() == "\xff\n");
}

TEST_CASE("the bytes of a StringList are its strings with their NULs", "[wire]") {
  CHECK(StringList{"a", "", "b"}.bytes() == std::string("a\0\0b\0", 5));
  CHECK(StringList().bytes().empty());
  CHECK(StringList().empty());
}

TEST_CASE("a list of one empty string is not an empty list", "[wire]") {
  const StringList one = {""};
  CHECK(one.count() == 1);
  CHECK(one != StringList());
  CHECK(one.strings() == std::vector<std::string>{""});
}

TEST_CASE("assign takes exactly as many NUL-terminated strings as it is told", "[wire]") {
  struct Row {
    std::string bytes;
    std::uint32_t count;
    bool is_valid;
  };
  const auto row = GENERATE(values<Row>({
      {"", 0, true},
      {std::string("a\0", 2), 1, true},
      {std::string("\0\0", 2), 2, true},
      {"", 1, false},
      {"a", 0, false},
      {"a", 1, false},
      {std::string("a\0b", 3), 1, false},
      {std::string("a\0b", 3), 2, false},
      {std::string("a\0", 2), 0, false},
      {std::string("a\0", 2), 2, false},
      {std::string("a\0", 2), UINT32_MAX, false},
  }));
  CAPTURE(row.bytes, row.count);
  StringList list = {"before"};
  CHECK(list.assign(row.bytes, row.count) == row.is_valid);
  if (row.is_valid) {
    CHECK(list.count() == row.count);
    CHECK(list.bytes() == row.bytes);
  } else {
    CHECK(list == StringList{"before"});
  }
}

TEST_CASE("pointers gives the array execve takes", "[wire]") {
  StringList list = {"sh", "", "-c"};
  const auto pointers = list.pointers();
  REQUIRE(pointers.size() == 4);
  CHECK(std::string(pointers[0]) == "sh");
  CHECK(std::string(pointers[1]).empty());
  CHECK(std::string(pointers[2]) == "-c");
  CHECK(pointers[3] == nullptr);
  CHECK(StringList().pointers() == std::vector<char*>{nullptr});
}
