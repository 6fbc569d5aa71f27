#include "api/http.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

namespace api {
namespace {

const std::string& value_in(const std::map<std::string, std::string>& map,
                            const std::string& name) {
  static const std::string kNone;
  const auto found = map.find(name);
  return found == map.end() ? kNone : found->second;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decoded(std::string_view text, bool is_query) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
      result.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      result.push_back(is_query && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return result;
}

bool read_query(std::string_view text, Request& request) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = std::min(field.find('='), field.size());
    const auto name = decoded(field.substr(0, equals), true);
    const auto value = decoded(field.substr(std::min(equals + 1, field.size())), true);
    if (!name || !value || request.query.size() >= kMaxQueryFields) return false;
    if (*name == "command") request.command.push_back(*value);
    if (request.command.size() > kMaxQueryWords) return false;
    if (!name->empty()) request.query.emplace(*name, *value);
  }
  return true;
}

}  // namespace

const std::string& Request::header(const std::string& name) const {
  return value_in(headers, name);
}
const std::string& Request::query_value(const std::string& name) const {
  return value_in(query, name);
}
const std::string& Request::param(const std::string& name) const { return value_in(params, name); }

bool read_target(std::string_view target, Request& request) {
  if (!target.starts_with('/')) return false;
  const auto question = std::min(target.find('?'), target.size());
  auto path = decoded(target.substr(0, question), false);
  if (!path) return false;
  request.path = std::move(*path);
  return read_query(target.substr(std::min(question + 1, target.size())), request);
}

bool is_request_id(std::string_view text) {
  constexpr std::string_view kSigns = "._:-";
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kSigns.find(c) != kSigns.npos;
  });
}

// "00-", 32 digits, "-", 16 digits, "-", 2 digits; ids of zeros only are none.
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kForm = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = kDigits.find(text[i]) != kDigits.npos;
    if (kForm[i] == 'x' ? !is_digit : text[i] != kForm[i]) return false;
  }
  return text.substr(3, 32).find_first_not_of('0') != text.npos &&
         text.substr(36, 16).find_first_not_of('0') != text.npos;
}

std::string to_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Response json_response(const nlohmann::json& value, unsigned status) {
  return {status, "application/json", to_text(value), {}};
}

}  // namespace api
