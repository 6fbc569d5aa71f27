#include "api/fields.h"

#include <algorithm>

#include "api/text.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::size_t kMostErrors = 20;

/// RFC 6901.
std::string escaped(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result.push_back(c);
    }
  }
  return result;
}

}  // namespace

Checked<json> read_body(const Request& request) {
  if (request.body.empty()) return json::object();
  const auto& type = request.header("content-type");
  const auto media = type.substr(0, type.find(';'));
  if (media != "application/json" && media != "application/merge-patch+json") {
    return tl::unexpected<Problem>(
        problem("unsupported-media-type", "set Content-Type: application/json"));
  }
  if (is_deeper_than(request.body, kDeepestJson)) {
    return tl::unexpected<Problem>(problem(
        "invalid-request", "JSON nested deeper than " + std::to_string(kDeepestJson) + " levels"));
  }
  json body = json::parse(request.body, nullptr, false);
  if (body.is_discarded()) {
    return tl::unexpected<Problem>(problem("invalid-request", "the body is not JSON"));
  }
  if (!body.is_object()) {
    return tl::unexpected<Problem>(problem("invalid-request", "the body is not a JSON object"));
  }
  return body;
}

const char* what_is_wrong_with_env(const json& env) {
  if (!env.is_object()) return "expected an object of strings";
  for (const auto& [name, value] : env.items()) {
    const bool is_right =
        !name.empty() && name.find_first_of(std::string("=\0", 2)) == std::string::npos &&
        (value.is_null() || (value.is_string() &&
                             value.get_ref<const std::string&>().find('\0') == std::string::npos));
    if (!is_right) return "expected names without '=' and strings or null, both without NUL";
  }
  return nullptr;
}

const json* Fields::find(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::text(const std::string& name, std::size_t longest) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    fail(name, "expected a string");
    return std::nullopt;
  }
  auto text = value->get<std::string>();
  if (text.size() > longest || text.find('\0') != std::string::npos) {
    fail(name, "expected at most " + std::to_string(longest) + " bytes, without NUL");
    return std::nullopt;
  }
  return text;
}

std::optional<bool> Fields::boolean(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "expected true or false");
  return std::nullopt;
}

std::optional<std::uint64_t> Fields::number(const std::string& name, std::uint64_t least,
                                            std::uint64_t most) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_integer() && *value >= 0) {
    const auto number = value->get<std::uint64_t>();
    if (number >= least && number <= most) return number;
  }
  fail(name,
       "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(const std::string& name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto is_text = [](const json& item) {
    return item.is_string() && item.get_ref<const std::string&>().find('\0') == std::string::npos;
  };
  if (value->is_array() && std::all_of(value->begin(), value->end(), is_text)) {
    return value->get<std::vector<std::string>>();
  }
  fail(name, "expected a list of strings without NUL");
  return std::nullopt;
}

std::optional<std::string> Fields::word(const std::string& name,
                                        const std::vector<std::string>& words) {
  auto found = text(name, 64);
  if (!found || std::find(words.begin(), words.end(), *found) != words.end()) return found;
  std::string expected;
  for (const auto& word : words) expected += (expected.empty() ? "" : ", ") + word;
  fail(name, "expected one of " + expected);
  return std::nullopt;
}

void Fields::fail(const std::string& name, std::string detail) {
  if (errors_.size() >= kMostErrors) return;
  errors_.push_back({name.empty() ? pointer_ : pointer_ + "/" + escaped(name), std::move(detail)});
}

void Fields::take_errors(Fields& part) {
  if (auto wrong = part.done()) {
    for (auto& error : wrong->errors) errors_.push_back(std::move(error));
  }
}

std::optional<Problem> Fields::done() {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) fail(key.substr(0, 64), "unknown field");
  }
  if (errors_.empty()) return std::nullopt;
  Problem wrong = problem("invalid-request");
  wrong.detail = errors_.front().detail;
  wrong.errors = std::move(errors_);
  return wrong;
}

}  // namespace api
