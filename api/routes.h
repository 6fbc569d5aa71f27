#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/problem.h"
#include "api/tokens.h"

namespace api {

struct App;

using Handler = void (*)(App& app, const std::shared_ptr<Exchange>& exchange);

/// An operation of the API; api/openapi.json describes the same ones.
struct Route {
  const char* method;
  /// With {names} for segments that may be anything.
  const char* pattern;
  /// operationId of the OpenAPI document, and the name in metrics.
  const char* operation;
  /// Nothing: no token is needed.
  std::optional<Scope> scope;
  Handler handler;
  /// The handler reads the body (Exchange::read_part), whose limit is ServerLimits::parted_body.
  bool reads_in_parts = false;
};

const std::vector<Route>& routes();

/// The {names} of `pattern` and what they stand for, if `path` matches.
std::optional<std::map<std::string, std::string>> match(std::string_view pattern,
                                                        std::string_view path);

/// The route of a request; if there is none for its method, `allowed` lists those there are.
const Route* find_route(const std::string& method, const std::string& path,
                        std::map<std::string, std::string>& params,
                        std::vector<std::string>& allowed);

/// Finds the route and who asks. The problem, if the request is not allowed.
std::optional<Problem> admit(App& app, Request& request, const Route*& route);

}  // namespace api
