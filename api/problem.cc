#include "api/problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace api {

const std::vector<ProblemKind> kProblemKinds = {
    {"invalid-request", 400, "The request is not valid"},
    {"unauthorized", 401, "A valid bearer token is needed"},
    {"forbidden-scope", 403, "The token does not allow this"},
    {"forbidden-place", 403, "The token may not be used from here"},
    {"forbidden-host", 403, "This host name or origin is not allowed"},
    {"not-found", 404, "There is nothing at this address"},
    {"context-not-found", 404, "There is no such context"},
    {"shell-not-found", 404, "The context has no such shell"},
    {"exec-not-found", 404, "There is no such exec"},
    {"terminal-not-found", 404, "There is no such terminal"},
    {"file-not-found", 404, "There is no such file or folder"},
    {"method-not-allowed", 405, "This address does not take that method"},
    {"file-forbidden", 403, "The context's user may not do this to the file"},
    {"not-acceptable", 406, "None of the accepted media types is available"},
    {"request-timeout", 408, "The request did not arrive in time"},
    {"context-exists", 409, "There is a context of this name already"},
    {"shell-busy", 409, "The shell runs another command"},
    {"request-in-progress", 409, "The same request is being done"},
    {"exec-ended", 409, "The exec has ended"},
    {"stdin-closed", 409, "The exec has no open input"},
    {"no-terminal", 409, "The exec has no terminal"},
    {"terminal-busy", 409, "Another client writes to it"},
    {"file-exists", 409, "There is something of this name already"},
    {"is-a-folder", 409, "It is a folder"},
    {"not-a-folder", 409, "A part of the path, or what it leads to, is no folder"},
    {"not-a-file", 409, "It is no regular file"},
    {"folder-not-empty", 409, "The folder is not empty"},
    {"file-busy", 409, "The file is in use"},
    {"exec-forgotten", 410, "What this key started is no longer known"},
    {"precondition-failed", 412, "The file is not as the request wants it to be"},
    {"payload-too-large", 413, "The body is too large"},
    {"unsupported-media-type", 415, "The body must be JSON"},
    {"range-not-satisfiable", 416, "The file has no such part"},
    {"idempotency-key-reused", 422, "The key came with another body before"},
    {"cwd-not-found", 422, "The folder cannot be entered"},
    {"invalid-path", 422, "The path cannot be used for this"},
    {"other-file-system", 422, "A folder cannot be moved to another file system"},
    {"not-supported", 422, "This daemon cannot do that"},
    {"upgrade-required", 426, "This address speaks WebSocket"},
    {"too-many-requests", 429, "Too many requests"},
    {"headers-too-large", 431, "The header is too large"},
    {"internal", 500, "The server failed"},
    {"daemon-unavailable", 503, "The daemon does not answer"},
    {"overloaded", 503, "Too much runs already"},
    {"io-error", 500, "The file system failed"},
    {"files-timeout", 504, "The context's file system did not answer in time"},
    {"no-space", 507, "There is no space left"},
};

Problem problem(const char* code, std::string detail) {
  const auto kind =
      std::find_if(kProblemKinds.begin(), kProblemKinds.end(),
                   [code](const auto& each) { return std::string(each.code) == code; });
  if (kind == kProblemKinds.end()) return {.title = "The server failed"};
  Problem made{kind->status, kind->code, kind->title, std::move(detail), {}, false, 0};
  made.is_retryable = kind->status == 429 || kind->status == 503 || kind->status == 408;
  if (kind->status == 429 || kind->status == 503) made.retry_after_s = 1;
  if (made.code == "request-in-progress") {
    made.is_retryable = true;
    made.retry_after_s = 1;
  }
  return made;
}

nlohmann::json to_json(const Problem& problem, const std::string& request_id) {
  nlohmann::json body = {{"type", "https://airlock.invalid/problems/" + problem.code},
                         {"title", problem.title},
                         {"status", problem.status},
                         {"code", problem.code},
                         {"retryable", problem.is_retryable},
                         {"requestId", request_id}};
  if (!problem.detail.empty()) body["detail"] = problem.detail;
  for (const auto& [pointer, detail] : problem.errors) {
    body["errors"].push_back({{"pointer", pointer}, {"detail", detail}});
  }
  return body;
}

Response to_response(const Problem& problem, const std::string& request_id) {
  Response response{
      problem.status, "application/problem+json", to_text(to_json(problem, request_id)), {}};
  if (problem.retry_after_s != 0) {
    response.headers.emplace_back("Retry-After", std::to_string(problem.retry_after_s));
  }
  if (problem.status == 426) response.headers.emplace_back("Upgrade", "websocket");
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace api
