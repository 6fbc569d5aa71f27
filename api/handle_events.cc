// What happens in the daemon, as it happens: streams without an end.

#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/event_stream.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// Answers with events of `type`: what the daemon tells by `verb`, after its first answer.
void follow(App& app, const std::shared_ptr<Exchange>& exchange, const std::string& verb,
            const char* type) {
  const auto format = stream_format(exchange->request());
  if (!format) return refuse(*exchange, problem("not-acceptable"));
  auto stream = EventStream::start(app.io, exchange, *format);
  auto followed = app.daemon->follow(
      verb, {{"follow", true}},
      [stream, type](const json& event) {
        if (!event.contains("ok")) stream->send(type, event);
      },
      [stream] { stream->end(problem("daemon-unavailable"), {}); });
  if (!followed) return stream->end(problem_of(followed.error()), {});
  stream->keep(std::shared_ptr<FrameConnection>(std::move(*followed)));
}

}  // namespace

void get_route_events(App& app, const std::shared_ptr<Exchange>& exchange) {
  follow(app, exchange, "routes", "route");
}

// Asked for apart first: without an audit log there is nothing to follow.
void get_audit_events(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask_apart("audit.follow", json::object(),
                        [&app, exchange](const base::Result<json>& answer) {
                          if (!answer) return refuse(*exchange, problem_of(answer.error()));
                          follow(app, exchange, "audit.follow", "audit");
                        });
}

}  // namespace api
