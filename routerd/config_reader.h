#pragma once

// Typed values out of YAML nodes, and one error for each that is wrong. Knows how to say what was
// found and what was expected; which keys there are is known to config.cc and config_context.cc.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "routerd/config.h"
#include "routerd/config_yaml.h"

namespace routerd {

/// A value and the key it belongs to: of a map, or of the list it is an item of. Borrowed.
struct Field {
  const YamlNode& key;
  const YamlNode& value;
};

/// A word of the file and what it means.
template <class E>
struct Choice {
  std::string_view name;
  E value;
};

/// A place in the file where a context names another.
struct ContextReference {
  std::string from;
  std::string to;
  bool is_route = false;  ///< programs of `from` may be routed to `to`
  int line = 0;
  int column = 0;
};

/// `text` in single quotes, control characters as \xNN, cut after 60 bytes.
std::string quote(std::string_view text);

/// "; did you mean 'cwd'?" if one of `candidates` is spelled nearly like `name`, else empty.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

/// "a, b or c".
std::string join_words(std::span<const std::string_view> words, std::string_view last = " or ");

/// Reads values; each failed read adds an error and gives nullopt (or calls nothing).
class ConfigReader {
 public:
  explicit ConfigReader(std::string file_name) : file_name_(std::move(file_name)) {}

  void fail(const YamlNode& at, std::string message);
  /// "'key': message", at the value (at the key if there is none).
  void fail(const Field& field, std::string_view message);
  /// "'key': expected …, found 'value'" and `note`. Not for what may be secret.
  void fail_expected(const Field& field, std::string_view expected, std::string_view note = {});

  /// "unknown key" with the nearest of `names`, or all of them.
  void fail_unknown_key(const Field& field, std::span<const std::string_view> names);

  /// A string without NUL that is not empty; numbers and booleans are their text. `expected` is for
  /// the error, as "a user name". The text found is quoted in no error of these two functions.
  std::optional<std::string> text(const Field& field, std::string_view expected);
  std::optional<std::string> text_or_empty(const Field& field, std::string_view expected);

  /// An absolute path without "." and ".." parts; "//" and a slash at the end are taken out.
  std::optional<std::string> path(const Field& field, std::string_view expected);
  std::optional<bool> boolean(const Field& field);
  std::optional<std::uint64_t> number(const Field& field, std::uint64_t min, std::uint64_t max);

  /// The name of a context, noted as a reference to be checked when all contexts are known.
  std::optional<std::string> context_name(const Field& field, const std::string& from,
                                          bool is_route);

  template <class E, std::size_t kCount>
  std::optional<E> choice(const Field& field, const Choice<E> (&choices)[kCount]) {
    std::array<std::string_view, kCount> names;
    for (std::size_t i = 0; i < kCount; ++i) names[i] = choices[i].name;
    const auto index = choice_index(field, names);
    return index ? std::optional<E>(choices[*index].value) : std::nullopt;
  }

  /// Calls `read(Field)` for each entry of a map. Keys must be strings; of equal ones all but the
  /// first are errors. Nothing written after the colon is an empty map.
  template <std::invocable<const Field&> Read>
  void for_each_entry(const Field& field, Read read) {
    for (const Field& entry : entries(field)) read(entry);
  }

  /// Calls `read(Field)` for each item of a list; the key is the list's. Nothing is an empty list.
  template <std::invocable<const Field&> Read>
  void for_each_item(const Field& field, Read read) {
    for (const Field& item : items(field)) read(item);
  }

  const std::vector<ContextReference>& references() const { return references_; }
  std::vector<ConfigError> take_errors() { return std::move(errors_); }

 private:
  void fail_kind(const Field& field, std::string_view expected);
  std::optional<std::size_t> choice_index(const Field& field,
                                          std::span<const std::string_view> names);
  std::vector<Field> entries(const Field& field);
  std::vector<Field> items(const Field& field);

  std::string file_name_;
  std::vector<ContextReference> references_;
  std::vector<ConfigError> errors_;
};

/// One key of a map: reads its value into a T.
template <class T>
struct Key {
  std::string_view name;
  void (*read)(ConfigReader&, const Field&, T&);
};

/// `target = *value` if there is one.
template <class T, class Value>
void set(T& target, std::optional<Value> value) {
  if (value) target = std::move(*value);
}

/// Reads one entry of a map of which `keys` are all the keys there may be.
template <class T>
void read_entry(ConfigReader& reader, const Field& entry, std::span<const Key<T>> keys, T& target) {
  const auto known = std::ranges::find(keys, std::string_view(entry.key.text), &Key<T>::name);
  if (known != keys.end()) return known->read(reader, entry, target);
  std::vector<std::string_view> names;
  for (const Key<T>& key : keys) names.push_back(key.name);
  reader.fail_unknown_key(entry, names);
}

/// Reads a whole map with read_entry.
template <class T>
void read_map(ConfigReader& reader, const Field& field, std::span<const Key<T>> keys, T& target) {
  reader.for_each_entry(field,
                        [&](const Field& entry) { read_entry(reader, entry, keys, target); });
}

}  // namespace routerd
