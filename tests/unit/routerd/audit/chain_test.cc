#include "routerd/audit/chain.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "base/sha256.h"

using routerd::audit::append_to_chain;
using routerd::audit::ChainCheck;
using routerd::audit::Head;
using routerd::audit::parse_head;
using routerd::audit::to_text;

namespace {

using Lines = std::vector<std::string>;

/// A file of `count` records that goes on where `head` is.
Lines file_of(Head& head, int count) {
  Lines lines = {append_to_chain(head, {{"event", "audit.opened"}, {"previous", head.hash}})};
  for (int i = 1; i < count; ++i) lines.push_back(append_to_chain(head, {{"event", "exec"}}));
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

/// "LINE: WHAT" of each problem, cut after 40 bytes.
Lines problems_of(const std::vector<Lines>& files, const Head& known = {}) {
  ChainCheck check;
  int number = 0;
  for (const auto& lines : files) check.add_file(std::to_string(++number), text_of(lines));
  check.expect(known);
  Lines problems;
  for (const auto& problem : check.problems()) {
    problems.push_back(problem.file + ":" + std::to_string(problem.line) + ": " +
                       problem.what.substr(0, 40));
  }
  return problems;
}

}  // namespace

TEST_CASE("a log as it was written is intact", "[audit]") {
  Head head;
  const auto lines = file_of(head, 5);
  CHECK(head.number == 5);
  CHECK(problems_of({lines}, head).empty());
  CHECK(lines[1].starts_with(R"({"event":"exec","seq":2,"hash":")"));
}

TEST_CASE("a line that was edited, with and without its hash", "[audit]") {
  Head head;
  auto lines = file_of(head, 5);
  const auto original = lines[2];
  lines[2].replace(lines[2].find("exec"), 4, "EXEC");
  CHECK(problems_of({lines}) == Lines{"1:3: it is not what was written, or what was "});
  // With a hash that fits the line, the next one does not fit.
  Head before{2, routerd::audit::head_of(lines[1].substr(0, lines[1].size() - 1))->hash};
  lines[2] = append_to_chain(before, {{"event", "forged"}});
  CHECK(problems_of({lines}) == Lines{"1:4: it is not what was written, or what was "});
}

TEST_CASE("lines that were removed, reordered, repeated, or are none", "[audit]") {
  Head head;
  const auto lines = file_of(head, 6);
  SECTION("removed") {
    auto changed = lines;
    changed.erase(changed.begin() + 2, changed.begin() + 4);
    CHECK(problems_of({changed}) == Lines{"1:3: records 3 to 4 are missing before it"});
  }
  SECTION("reordered") {
    auto changed = lines;
    std::swap(changed[2], changed[3]);
    CHECK(problems_of({changed}).size() == 3);
  }
  SECTION("repeated") {
    auto changed = lines;
    changed.insert(changed.begin() + 3, changed[2]);
    CHECK(problems_of({changed}) == Lines{"1:4: record 3 comes after record 3"});
  }
  SECTION("not a record") {
    for (const char* other : {"\n", "{}\n", "garbage\n", "{\"seq\":3}\n"}) {
      auto changed = lines;
      changed.insert(changed.begin() + 3, other);
      CHECK(problems_of({changed}) == Lines{"1:4: no record of an audit log"});
    }
  }
  SECTION("the first lines") {
    auto changed = lines;
    changed.erase(changed.begin());
    CHECK(problems_of({changed}).front() == "1:1: a file begins with another record");
  }
}

TEST_CASE("an end that is missing or cut off", "[audit]") {
  Head head;
  auto lines = file_of(head, 5);
  lines.pop_back();
  CHECK(problems_of({lines}).empty());  // nobody can know, without the head
  CHECK(problems_of({lines}, head) == Lines{"1:4: record 5:" + head.hash.substr(0, 31)});
  lines.back().resize(lines.back().size() - 10);
  CHECK(problems_of({lines}) == Lines{"1:4: the line is cut off"});
  CHECK(problems_of({Lines{}}) == Lines{"1:0: the file is empty"});
}

TEST_CASE("rotated files are one chain", "[audit]") {
  Head head;
  const auto first = file_of(head, 3), second = file_of(head, 3), third = file_of(head, 3);
  CHECK(problems_of({first, second, third}, head).empty());
  CHECK(problems_of({second, third}, head).empty());  // the oldest is kept no longer
  CHECK(problems_of({first, third}) == Lines{"2:1: records 4 to 6 are missing before it"});
  Head other;
  file_of(other, 2);
  CHECK(problems_of({first, file_of(other, 3)}) == Lines{"2:1: record 3 comes after record 3"});
  Head stranger{3, std::string(64, 'a')};
  CHECK(problems_of({first, file_of(stranger, 2)}) ==
        Lines{"2:1: it is not what was written, or what was "});
}

TEST_CASE("a head as text", "[audit]") {
  const Head head{7, base::hex(base::sha256("x"))};
  CHECK(parse_head(to_text(head)) == head);
  for (const char* wrong : {"", "7", ":", "7:abc", "x:y", "-1:"}) CHECK_FALSE(parse_head(wrong));
}
