#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/problem.h"

namespace api {

/// Which names the API answers to, and which web pages may use it.
struct GuardRules {
  std::vector<std::string> hosts;    ///< beside localhost and addresses
  std::vector<std::string> origins;  ///< "https://app.example"
};

/// What is wrong with the Host or the Origin of a request, if anything. Host: a web page's name
/// that was made to point here (DNS rebinding) is refused; an IP address cannot be such a name.
/// Origin: a browser sends it for requests of pages; only the listed ones may.
std::optional<Problem> check_origin(const Request& request, const GuardRules& rules);

/// The headers that tell a browser that `origin` may read the answer; none if it may not.
std::vector<std::pair<std::string, std::string>> cors_headers(const std::string& origin,
                                                              const GuardRules& rules);

/// The answer to a CORS preflight, if `request` is one.
std::optional<Response> preflight(const Request& request, const GuardRules& rules);

}  // namespace api
