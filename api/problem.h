#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/http.h"

namespace api {

/// Why a request is not done: an RFC 9457 problem. `code` is stable and for programs, the rest for
/// people. Never holds the value of a variable, an argument, or a path of the server's.
struct Problem {
  /// One field of the request that is wrong.
  struct FieldError {
    std::string pointer;  ///< JSON Pointer (RFC 6901); "" is the whole body
    std::string detail;
  };

  unsigned status = 500;
  std::string code = "internal";
  std::string title;
  std::string detail;
  std::vector<FieldError> errors;
  /// Worth another try as it is; after `retry_after_s` seconds, if that is not 0.
  bool is_retryable = false;
  unsigned retry_after_s = 0;
};

/// The codes there are, with their status and title. docs/API.md lists the same.
struct ProblemKind {
  const char* code;
  unsigned status;
  const char* title;
};
extern const std::vector<ProblemKind> kProblemKinds;

/// A problem of a known kind; `code` must be one of kProblemKinds.
Problem problem(const char* code, std::string detail = {});

nlohmann::json to_json(const Problem& problem, const std::string& request_id);
Response to_response(const Problem& problem, const std::string& request_id);

}  // namespace api
