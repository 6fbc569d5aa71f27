#include "api/app.h"

#include <spdlog/spdlog.h>

namespace api {

// The daemon's words about the client's own words may be told; the rest stays here.
Problem problem_of(const base::Error& error) {
  switch (error.code) {
    case ENOENT:
      return problem("context-not-found");
    case EEXIST:
      return problem("context-exists");
    case EINVAL:
      return problem("invalid-request", error.operation);
    case ENOTSUP:
      return problem("not-supported", error.operation);
    case EAGAIN:
    case EMFILE:
    case ENFILE:
      return problem("overloaded");
    default:
      spdlog::error("daemon: {}", error.message());
      return problem("daemon-unavailable");
  }
}

AskedBy asked_by(const App& app, const Request& request) {
  if (!app.is_audited) return {};
  AskedBy fields = {{"operation", request.operation},
                    {"requestId", request.id},
                    {"client", request.client},
                    {"token", request.token ? request.token->name : ""}};
  const auto& trace = request.header("traceparent");
  if (is_traceparent(trace)) fields["traceparent"] = trace;
  return fields;
}

void refuse(Exchange& exchange, const Problem& problem) {
  exchange.reply(to_response(problem, exchange.request().id));
}

}  // namespace api
