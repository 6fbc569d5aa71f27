#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "api/problem.h"

namespace api {

template <class T>
using Checked = tl::expected<T, Problem>;

/// A request's body as JSON: of the right media type, not nested too deep, an object. An empty body
/// is an empty object.
Checked<nlohmann::json> read_body(const Request& request);
constexpr std::size_t kDeepestJson = 16;

/// Why `env` is no object of variables: strings, or null for what is to be removed. Null: it is
/// one.
const char* what_is_wrong_with_env(const nlohmann::json& env);

/// Typed fields of a JSON object. What is wrong is collected; done() tells. A field nobody asked
/// for is wrong, too: it may be a misspelled one.
class Fields {
 public:
  /// `object` must be one, and is borrowed. `pointer` is its place in the body.
  explicit Fields(const nlohmann::json& object, std::string pointer = {})
      : object_(object), pointer_(std::move(pointer)) {}

  /// The field unless it is missing or null.
  const nlohmann::json* find(const std::string& name);
  bool has(const std::string& name) { return find(name) != nullptr; }
  /// A string without NUL.
  std::optional<std::string> text(const std::string& name, std::size_t longest = 4096);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::uint64_t> number(const std::string& name, std::uint64_t least,
                                      std::uint64_t most);
  std::optional<std::vector<std::string>> texts(const std::string& name);
  /// One of `words`.
  std::optional<std::string> word(const std::string& name, const std::vector<std::string>& words);

  void fail(const std::string& name, std::string detail);
  /// Takes over what is wrong with a part.
  void take_errors(Fields& part);
  /// The problem, if anything is wrong.
  std::optional<Problem> done();

 private:
  const nlohmann::json& object_;
  std::string pointer_;
  std::set<std::string> known_;
  std::vector<Problem::FieldError> errors_;
};

}  // namespace api
