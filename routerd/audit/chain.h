#pragma once

// The audit log's format: one JSON object per line, each with a number and a hash over its text and
// the hash of the line before. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routerd::audit {

/// Where a chain stands: the last line's number and hash. Number 0: there is none yet.
struct Head {
  std::uint64_t number = 0;
  std::string hash = std::string(64, '0');
  bool operator==(const Head&) const = default;
};

/// "NUMBER:HASH", for people to note elsewhere.
std::string to_text(const Head& head);
std::optional<Head> parse_head(std::string_view text);

/// `record` as the line after `head`, with the newline; `head` becomes that line's.
/// {"seq": NUMBER, …, "hash": SHA256(hash of the line before, newline, the object without "hash")}
std::string append_to_chain(Head& head, nlohmann::json record);

/// Number and hash of a line as it says itself, without looking at the rest; nothing if it is none.
std::optional<Head> head_of(std::string_view line);

struct ChainProblem {
  std::string file;
  /// From 1.
  std::size_t line = 0;
  std::string what;
};

/// Checks a log, oldest file first. A file begins with a record that has "previous", the hash of
/// the line before it: so the oldest one there is can be checked without those that are gone.
class ChainCheck {
 public:
  /// The next file, whole.
  void add_file(const std::string& name, std::string_view text);
  /// When all files have been added: the line that somebody knows of must be there, as it was.
  void expect(const Head& known);

  const std::vector<ChainProblem>& problems() const { return problems_; }
  std::uint64_t lines() const { return lines_; }
  /// Of the first and last line.
  const Head& first() const { return first_; }
  const Head& last() const { return head_; }

 private:
  void add_line(std::string_view line, bool is_first_of_file);
  void fail(std::string what);

  std::string file_;
  std::size_t line_ = 0;
  std::uint64_t lines_ = 0;
  Head first_;
  Head head_;
  /// Every line's hash by number, for expect().
  std::vector<std::pair<std::uint64_t, std::string>> seen_;
  std::vector<ChainProblem> problems_;
};

}  // namespace routerd::audit
