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

namespace {

nlohmann::json origin_of(const Request& request) {
  nlohmann::json origin = {{"requestId", request.id},
                           {"client", request.client},
                           {"token", request.token ? request.token->name : ""}};
  const auto& trace = request.header("traceparent");
  if (is_traceparent(trace)) origin["traceparent"] = trace;
  return origin;
}

}  // namespace

void record_exec(App& app, const Request& request, const std::shared_ptr<Exec>& exec) {
  if (!app.is_audited) return;
  auto subscription = std::make_shared<std::uint64_t>(0);
  *subscription = exec->subscribe(
      [&app, weak = std::weak_ptr(exec), subscription, origin = origin_of(request)] {
        const auto started = weak.lock();
        if (!started || (started->facts().job == 0 && !started->has_ended())) return;
        nlohmann::json record = origin;
        record["exec"] = started->facts().id;
        record["context"] = started->facts().context;
        record["job"] = started->facts().job;
        app.daemon->ask("api.exec", std::move(record), [](const base::Result<nlohmann::json>&) {});
        started->unsubscribe(*subscription);  // the last: this is gone then
      });
}

void refuse(Exchange& exchange, const Problem& problem) {
  exchange.reply(to_response(problem, exchange.request().id));
}

}  // namespace api
