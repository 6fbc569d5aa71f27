#include "routerd/config_reader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace routerd {
namespace {

using std::string_view;

constexpr std::size_t kMaxQuoted = 60;      // bytes of a value that an error repeats
constexpr std::size_t kMaxSuggestFor = 40;  // bytes; longer names are no misspelled keys
constexpr std::size_t kMaxPathSize = 4095;  // PATH_MAX, linux/limits.h, without its NUL

// Levenshtein's distance, with two swapped letters as one mistake.
std::size_t edit_distance(string_view a, string_view b) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, std::move(row));
  }
  return above.back();
}

std::optional<std::uint64_t> parse_number(string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Without doubled slashes and one at the end; nullopt if relative or with "." or "..".
std::optional<std::string> clean_path(string_view text) {
  if (!text.starts_with('/') || text.size() > kMaxPathSize) return std::nullopt;
  std::string path;
  while (!text.empty()) {
    text.remove_prefix(1);
    const string_view part = text.substr(0, text.find('/'));
    if (part == "." || part == "..") return std::nullopt;
    if (!part.empty()) path.append(1, '/').append(part);
    text.remove_prefix(part.size());
  }
  return path.empty() ? "/" : path;
}

}  // namespace

std::string quote(string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      quoted += c;
    } else {
      constexpr string_view kHex = "0123456789abcdef";
      quoted.append("\\x").append(1, kHex[byte >> 4U]).append(1, kHex[byte & 15U]);
    }
  }
  return quoted + (text.size() > kMaxQuoted ? "...'" : "'");
}

std::string suggestion(string_view name, std::span<const string_view> candidates) {
  if (name.size() > kMaxSuggestFor) return {};
  string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best.empty() ? "" : "; did you mean " + quote(best) + "?";
}

std::string join_words(std::span<const string_view> words, string_view last) {
  std::string joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += i + 1 == words.size() ? last : ", ";
    joined += words[i];
  }
  return joined;
}

void ConfigReader::fail(const YamlNode& at, std::string message) {
  errors_.push_back({file_name_, at.line, at.column, std::move(message)});
}

void ConfigReader::fail(const Field& field, string_view message) {
  const bool is_null = field.value.kind == YamlNode::Kind::null;  // yaml-cpp has no place for it
  fail(is_null ? field.key : field.value, quote(field.key.text).append(": ").append(message));
}

void ConfigReader::fail_kind(const Field& field, string_view expected) {
  const bool has_nul = field.value.text.find('\0') != std::string::npos;
  const string_view found = field.value.kind != YamlNode::Kind::scalar ? describe(field.value.kind)
                            : has_nul                                  ? "a string with a NUL byte"
                            : field.value.text.empty()                 ? "an empty string"
                                                                       : "a string";
  fail(field, std::string("expected ").append(expected).append(", found ").append(found));
}

void ConfigReader::fail_expected(const Field& field, string_view expected, string_view note) {
  const std::string found = quote(field.value.text).append(note);
  fail(field, std::string("expected ").append(expected).append(", found ").append(found));
}

void ConfigReader::fail_unknown_key(const Field& field, std::span<const string_view> names) {
  std::string hint = suggestion(field.key.text, names);
  if (hint.empty()) hint = "; expected " + join_words(names);
  fail(field.key, "unknown key " + quote(field.key.text) + hint);
}

std::optional<std::string> ConfigReader::text_or_empty(const Field& field, string_view expected) {
  const std::string& text = field.value.text;
  if (field.value.kind == YamlNode::Kind::scalar && text.find('\0') == std::string::npos) {
    return text;
  }
  fail_kind(field, expected);
  return std::nullopt;
}

std::optional<std::string> ConfigReader::text(const Field& field, string_view expected) {
  auto text = text_or_empty(field, expected);
  if (!text || !text->empty()) return text;
  fail_kind(field, expected);
  return std::nullopt;
}

std::optional<std::string> ConfigReader::path(const Field& field, string_view expected) {
  const auto text = this->text(field, expected);
  if (!text) return std::nullopt;
  auto path = clean_path(*text);
  if (!path) fail_expected(field, expected);
  return path;
}

std::optional<std::string> ConfigReader::context_name(const Field& field, const std::string& from,
                                                      bool is_route) {
  auto name = text(field, "the name of a context");
  if (name) references_.push_back({from, *name, is_route, field.value.line, field.value.column});
  return name;
}

std::optional<bool> ConfigReader::boolean(const Field& field) {
  return choice<bool>(field, {{"true", true}, {"false", false}});
}

std::optional<std::uint64_t> ConfigReader::number(const Field& field, std::uint64_t min,
                                                  std::uint64_t max) {
  const std::string expected =
      "a number from " + std::to_string(min) + " to " + std::to_string(max);
  const auto text = this->text(field, expected);
  if (!text) return std::nullopt;
  const auto number = parse_number(*text);
  if (number && *number >= min && *number <= max) return number;
  fail_expected(field, expected);
  return std::nullopt;
}

std::optional<std::size_t> ConfigReader::choice_index(const Field& field,
                                                      std::span<const string_view> names) {
  const std::string expected = join_words(names);
  const auto text = this->text(field, expected);
  if (!text) return std::nullopt;
  const auto found = std::ranges::find(names, *text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  fail_expected(field, expected, suggestion(*text, names));
  return std::nullopt;
}

std::vector<Field> ConfigReader::entries(const Field& field) {
  std::vector<Field> fields;
  if (field.value.kind == YamlNode::Kind::null) return fields;
  if (field.value.kind != YamlNode::Kind::map) {
    fail_kind(field, "a map");
    return fields;
  }
  std::map<string_view, int> lines;
  const std::vector<YamlNode>& nodes = field.value.items;
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
    const YamlNode& key = nodes[i];
    if (key.kind != YamlNode::Kind::scalar) {
      const YamlNode& at = key.kind == YamlNode::Kind::null ? field.value : key;
      fail(at, std::string("expected a name as key, found ").append(describe(key.kind)));
      continue;
    }
    const auto [first, is_new] = lines.emplace(key.text, key.line);
    if (is_new) {
      fields.push_back({key, nodes[i + 1]});
    } else {
      fail(key,
           "duplicate key " + quote(key.text) + ", first on line " + std::to_string(first->second));
    }
  }
  return fields;
}

std::vector<Field> ConfigReader::items(const Field& field) {
  std::vector<Field> fields;
  if (field.value.kind == YamlNode::Kind::null) return fields;
  if (field.value.kind != YamlNode::Kind::list) {
    fail_kind(field, "a list");
    return fields;
  }
  for (const YamlNode& item : field.value.items) fields.push_back({field.key, item});
  return fields;
}

}  // namespace routerd
