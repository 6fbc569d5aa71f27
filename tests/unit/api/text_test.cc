#include "api/text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace std::string_literals;

TEST_CASE("UTF-8 is told from other bytes", "[api]") {
  for (const auto& good :
       {""s, "abc"s, "\0"s, "é你\U0001f4a5"s, "\xf4\x8f\xbf\xbf"s, "\xed\x9f\xbf"s}) {
    CHECK(api::is_utf8(good));
  }
  // Alone, cut off, overlong, a surrogate, beyond U+10FFFF.
  for (const auto& bad : {"\x80"s, "\xff"s, "a\xe2\x89"s, "\xc0\x80"s, "\xe0\x80\x80"s,
                          "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s, "\xf0\x8f\xbf\xbf"s, "\xc3("s}) {
    CAPTURE(bad);
    CHECK_FALSE(api::is_utf8(bad));
  }
}

TEST_CASE("the parts of a character that was cut are found at both ends", "[api]") {
  const std::string text = "a\U0001f4a5";
  for (std::size_t cut = 1; cut <= text.size(); ++cut) {
    const auto head = text.substr(0, cut);
    const auto tail = text.substr(cut);
    const bool is_whole = cut == 1 || cut == text.size();
    CHECK(api::incomplete_tail(head) == (is_whole ? 0 : cut - 1));
    CHECK(api::orphaned_head(tail) == (is_whole ? 0 : tail.size()));
  }
  CHECK(api::incomplete_tail("\x80\x80\x80\x80") == 0);  // no beginning: it is no character at all
}

TEST_CASE("base64 goes both ways and takes one text per value", "[api]") {
  for (const auto& [bytes, text] : {std::pair{""s, ""s},
                                    {"f"s, "Zg=="s},
                                    {"fo"s, "Zm8="s},
                                    {"foo"s, "Zm9v"s},
                                    {"foob"s, "Zm9vYg=="s},
                                    {"\xfb\xff\xfe"s, "+//+"s},
                                    {"\0\xff"s, "AP8="s}}) {
    CHECK(api::to_base64(bytes) == text);
    CHECK(api::from_base64(text) == bytes);
  }
  for (const auto* bad : {"Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Zm9v\n", "===="}) {
    CAPTURE(bad);
    CHECK_FALSE(api::from_base64(bad));
  }
}

TEST_CASE("a JSON string is read as what it was made of", "[api]") {
  std::string all;
  for (char c = 0; c < 127; ++c) all.push_back(c);
  all += "é\\\"";
  std::string text;
  api::append_json_string(text, all);
  CHECK(nlohmann::json::parse(text) == all);
}

TEST_CASE("what is rare is found wherever it stands among plain letters", "[api]") {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, 'a');
      for (const char c : {'"', '\\', '\0', '\x1f', ' ', '!', '#', '[', ']', '\x7f'}) {
        text[at] = c;
        std::string json;
        api::append_json_string(json, text);
        REQUIRE(nlohmann::json::parse(json) == text);
        REQUIRE(api::is_utf8(text));
      }
      text[at] = '\x80';
      REQUIRE_FALSE(api::is_utf8(text));
      text.replace(at, 1, "é");
      REQUIRE(api::is_utf8(text));
      REQUIRE(api::from_base64(api::to_base64(text)) == text);
    }
  }
}

TEST_CASE("nesting is counted outside of strings", "[api]") {
  CHECK_FALSE(api::is_deeper_than(R"({"a": [[["[[[[\"[[["]]]})", 4));
  CHECK(api::is_deeper_than(R"({"a": [[["x"]]]})", 3));
  CHECK_FALSE(api::is_deeper_than("]]]]", 0));
}
