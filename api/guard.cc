#include "api/guard.h"

#include <algorithm>

namespace api {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Without the port; "[::1]:80" gives "[::1]".
std::string name_of(const std::string& host) {
  const auto end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (end == std::string::npos) return lower(host);
  return lower(host.substr(0, host.starts_with('[') ? end + 1 : end));
}

bool is_address(const std::string& name) {
  if (name.starts_with('[')) return name.ends_with(']');
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool is_in(const std::vector<std::string>& list, const std::string& word) {
  return std::any_of(list.begin(), list.end(),
                     [&word](const std::string& each) { return lower(each) == word; });
}

}  // namespace

std::optional<Problem> check_origin(const Request& request, const GuardRules& rules) {
  const std::string name = name_of(request.header("host"));
  if (name != "localhost" && !is_address(name) && !is_in(rules.hosts, name)) {
    return problem("forbidden-host",
                   "'hosts' of the configuration does not list the request's Host");
  }
  const auto& origin = request.header("origin");
  if (!origin.empty() && !is_in(rules.origins, lower(origin))) {
    return problem("forbidden-host",
                   "'origins' of the configuration does not list the request's Origin");
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> cors_headers(const std::string& origin,
                                                              const GuardRules& rules) {
  if (origin.empty() || !is_in(rules.origins, lower(origin))) return {};
  return {{"Access-Control-Allow-Origin", origin},
          {"Access-Control-Expose-Headers",
           "X-Request-Id, Retry-After, Idempotency-Replayed, ETag, Content-Range, Accept-Ranges"},
          {"Vary", "Origin"}};
}

std::optional<Response> preflight(const Request& request, const GuardRules& rules) {
  if (request.method != "OPTIONS" || request.header("access-control-request-method").empty()) {
    return std::nullopt;
  }
  Response response{204, "", "", cors_headers(request.header("origin"), rules)};
  if (response.headers.empty()) return to_response(problem("forbidden-host"), request.id);
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE");
  response.headers.emplace_back(
      "Access-Control-Allow-Headers",
      "Authorization, Content-Type, Last-Event-ID, X-Request-Id, Idempotency-Key, Range, If-Match, "
      "If-None-Match");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace api
