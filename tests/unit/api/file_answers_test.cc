#include "api/file_answers.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace {

using Strings = std::vector<std::string>;

/// "malformed" if it is.
Strings tags(std::string_view field, bool is_weak = false) {
  const auto parsed = api::parse_tags(field, is_weak);
  return parsed ? parsed->strings() : Strings{"malformed"};
}

/// "206 3 5": status, offset, length.
std::string range(std::string_view field, std::uint64_t length) {
  const auto answer = api::answer_range(field, length);
  return std::to_string(answer.status) + " " + std::to_string(answer.offset) + " " +
         std::to_string(answer.length);
}

std::string path_in(const json& body, bool& is_right) {
  api::Fields fields(body);
  auto path = api::read_path(fields, "path");
  is_right = !fields.done();
  return path;
}

}  // namespace

TEST_CASE("entity tags of conditions", "[api][files]") {
  CHECK(tags("*") == Strings{"*"});
  CHECK(tags(" \"a\" ,\t\"b, c\"") == Strings{"\"a\"", "\"b, c\""});
  CHECK(tags("\"\"") == Strings{"\"\""});
  // Weak ones never match strongly, and by what they say else.
  CHECK(tags("W/\"a\"", false) == Strings{"W/\"a\""});
  CHECK(tags("W/\"a\", \"b\"", true) == Strings{"\"a\"", "\"b\""});
  for (const auto* bad :
       {"", "a", "\"a", "\"a\" \"b\"", "\"a\",", ",", "w/\"a\"", "W/", "*, \"a\""}) {
    CAPTURE(bad);
    CHECK(tags(bad) == Strings{"malformed"});
  }
  std::string many = "\"0\"";
  for (std::size_t i = 1; i < api::kMostTags; ++i) many += ",\"x\"";
  CHECK(tags(many).size() == api::kMostTags);
  CHECK(tags(many + ",\"x\"") == Strings{"malformed"});
}

TEST_CASE("ranges of bytes", "[api][files]") {
  CHECK(range("", 10) == "200 0 10");
  CHECK(range("bytes=0-0", 10) == "206 0 1");
  CHECK(range("bytes=3-", 10) == "206 3 7");
  CHECK(range("bytes=3-100", 10) == "206 3 7");
  CHECK(range("bytes=-3", 10) == "206 7 3");
  CHECK(range("bytes=-30", 10) == "206 0 10");
  CHECK(range("bytes=9-9", 10) == "206 9 1");
  CHECK(range("bytes=10-", 10) == "416 0 0");
  CHECK(range("bytes=-0", 10) == "416 0 0");
  CHECK(range("bytes=0-", 0) == "416 0 0");
  CHECK(range("bytes=-1", 0) == "416 0 0");
  CHECK(range("bytes=0-18446744073709551615", 10) == "206 0 10");
  // Of no account.
  for (const auto* other :
       {"bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1-x", "bytes=5-4", "bytes=0-1,4-5",
        "items=0-1", "bytes=--1", "bytes=0-18446744073709551616"}) {
    CAPTURE(other);
    CHECK(range(other, 10) == "200 0 10");
  }
}

TEST_CASE("modes are octal", "[api][files]") {
  CHECK(api::parse_mode("0644") == 0644u);
  CHECK(api::parse_mode("7777") == 07777u);
  CHECK(api::parse_mode("0") == 0u);
  for (const auto* bad : {"", "8", "10000", "-1", "0x1", "644 ", "u+x"}) {
    CAPTURE(bad);
    CHECK_FALSE(api::parse_mode(bad));
  }
}

TEST_CASE("paths of bodies", "[api][files]") {
  bool is_right = false;
  CHECK(path_in({{"path", "a/b"}}, is_right) == "a/b");
  CHECK(is_right);
  CHECK(path_in({{"path", {{"base64", "/w=="}}}}, is_right) == "\xff");
  CHECK(is_right);
  for (const json& bad :
       {json({{"path", ""}}), json({{"path", 1}}), json({{"path", std::string("a\0b", 3)}}),
        json::object(), json({{"path", nullptr}}), json({{"path", {{"base64", "?"}}}}),
        json({{"path", {{"base64", "YQBi"}}}}), json({{"path", {{"base64", "YQ=="}, {"x", 1}}}}),
        json({{"path", std::string(4096, 'a')}})}) {
    CAPTURE(bad.dump());
    path_in(bad, is_right);
    CHECK_FALSE(is_right);
  }
  CHECK(path_in({{"path", std::string(4095, 'a')}}, is_right).size() == 4095);
  CHECK(is_right);
}

TEST_CASE("an entry as clients see it", "[api][files]") {
  wire::FileEntry entry{wire::FileType::file,      "name", "", 5, 04755, 1, 2,
                        1'700'000'000'123'456'789, 9};
  CHECK(api::to_json(entry) == json({{"name", "name"},
                                     {"type", "file"},
                                     {"size", 5},
                                     {"mode", "4755"},
                                     {"uid", 1},
                                     {"gid", 2},
                                     {"mtimeNs", "1700000000123456789"},
                                     {"etag", "\"5-17979cfe3d85cd15-9\""}}));
  entry.type = wire::FileType::symlink;
  entry.name = "\xff";
  entry.target = "to\xfe";
  const json told = api::to_json(entry);
  CHECK(told["nameBase64"] == "/w==");
  CHECK(told["targetBase64"] == "dG/+");
  CHECK_FALSE(told.contains("etag"));
}

TEST_CASE("every failure is a problem", "[api][files]") {
  using Why = wire::FileFailed::Why;
  CHECK(api::problem_of({Why::condition, 0}).status == 412);
  CHECK(api::problem_of({Why::not_a_file, 0}).code == "not-a-file");
  CHECK(api::problem_of({Why::os, ENOENT}).code == "file-not-found");
  CHECK(api::problem_of({Why::os, EDQUOT}).status == 507);
  // The context's own program may say any number.
  for (const int error : {0, -1, 199, 200, 100'000, INT_MIN, INT_MAX}) {
    CHECK(api::problem_of({Why::os, error}).code == "io-error");
  }
  for (int error = 1; error < 134; ++error) {
    CHECK(api::problem_of({Why::os, error}).code != "internal");
  }
}
