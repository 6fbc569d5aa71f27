#pragma once

#include <string_view>

namespace api {

/// api/openapi.json, the OpenAPI 3.1 document of all operations. A unit test holds it equal to
/// routes() and kProblemKinds.
extern const std::string_view kOpenApi;

}  // namespace api
