#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/event_stream.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// A context as clients see it: of the daemon's description, what is not about the machine.
json described(const json& context) {
  json told = json::object();
  for (const char* key : {"name", "cwd", "childContext", "routeChild", "enforce", "isolation",
                          "envNames", "user", "tier", "lacks", "integrity", "persistent"}) {
    if (const auto found = context.find(key); found != context.end()) told[key] = *found;
  }
  return told;
}

/// Answers with the context of the daemon's answer, or why there is none.
DaemonClient::Answer answer_context(std::shared_ptr<Exchange> exchange, unsigned status = 200) {
  return [exchange = std::move(exchange), status](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    auto response = json_response(described(answer->value("context", json::object())), status);
    if (status == 201) {
      response.headers.emplace_back("Location",
                                    "/api/v1/contexts/" + answer->at("context").value("name", ""));
    }
    exchange->reply(std::move(response));
  };
}

/// An object of strings and, to remove a name, nulls.
void read_env(Fields& fields, json& target) {
  const json* env = fields.find("env");
  if (env == nullptr) return;
  if (!env->is_object()) return fields.fail("env", "expected an object of strings");
  for (const auto& [name, value] : env->items()) {
    const bool is_right =
        !name.empty() && name.find_first_of(std::string("=\0", 2)) == std::string::npos &&
        (value.is_null() || (value.is_string() &&
                             value.get_ref<const std::string&>().find('\0') == std::string::npos));
    if (!is_right) return fields.fail("env", "expected names without '=' and strings or null");
  }
  target["env"] = *env;
}

void copy_text(Fields& fields, json& target, const char* name) {
  if (auto text = fields.text(name)) target[name] = std::move(*text);
}

Checked<json> read_spec(const json& body) {
  json spec = json::object();
  Fields fields(body);
  for (const char* name : {"name", "cwd", "childContext", "isolation", "enforce", "user"}) {
    copy_text(fields, spec, name);
  }
  if (!fields.has("name")) fields.fail("name", "expected a name");
  const json* route = fields.find("routeChild");
  if (route != nullptr && route->is_boolean()) {
    spec["routeChild"] = route->get<bool>() ? "always" : "never";
  } else if (auto word = fields.word("routeChild", {"auto", "always", "never"})) {
    spec["routeChild"] = *word;
  }
  read_env(fields, spec);
  for (const char* name : {"share", "hide"}) {
    if (auto list = fields.texts(name)) spec[name] = std::move(*list);
  }
  if (auto wrong = fields.done()) return tl::unexpected<Problem>(std::move(*wrong));
  return spec;
}

Checked<json> read_changes(const json& body) {
  json changes = json::object();
  Fields fields(body);
  copy_text(fields, changes, "cwd");
  copy_text(fields, changes, "childContext");
  read_env(fields, changes);
  if (auto wrong = fields.done()) return tl::unexpected<Problem>(std::move(*wrong));
  return changes;
}

}  // namespace

void list_contexts(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask("ctx.list", json::object(), [exchange](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    json items = json::array();
    for (const auto& context : answer->value("contexts", json::array())) {
      if (exchange->request().token->reaches(context.value("name", ""))) {
        items.push_back(described(context));
      }
    }
    exchange->reply(json_response({{"items", std::move(items)}}));
  });
}

void create_context(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  auto spec = body ? read_spec(*body) : Checked<json>(tl::unexpected<Problem>(body.error()));
  if (!spec) return refuse(*exchange, spec.error());
  if (!exchange->request().token->reaches(spec->value("name", ""))) {
    return refuse(*exchange, problem("forbidden-scope", "the token is not for this context"));
  }
  app.daemon->ask("ctx.create", {{"spec", std::move(*spec)}}, answer_context(exchange, 201));
}

void get_context(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto& name = exchange->request().param("context");
  app.daemon->ask("ctx.inspect", {{"context", name}}, answer_context(exchange));
}

void set_context(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  auto changes = body ? read_changes(*body) : Checked<json>(tl::unexpected<Problem>(body.error()));
  if (!changes) return refuse(*exchange, changes.error());
  const auto& name = exchange->request().param("context");
  app.daemon->ask("ctx.set", {{"context", name}, {"changes", std::move(*changes)}},
                  answer_context(exchange));
}

void destroy_context(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto& name = exchange->request().param("context");
  app.daemon->ask("ctx.remove", {{"context", name}}, [exchange](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    exchange->reply(json_response({{"survivors", answer->value("survivors", 0)}}));
  });
}

void explain_route(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  const auto argv = fields.texts("argv");
  if (!argv || argv->empty()) fields.fail("argv", "expected a program and its arguments");
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  const auto& name = exchange->request().param("context");
  app.daemon->ask("route.explain", {{"context", name}, {"argv", *argv}},
                  [exchange](const base::Result<json>& answer) {
                    if (!answer) return refuse(*exchange, problem_of(answer.error()));
                    json told = *answer;
                    told.erase("ok");
                    exchange->reply(json_response(told));
                  });
}

void get_route_events(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto format = stream_format(exchange->request());
  if (!format) return refuse(*exchange, problem("not-acceptable"));
  auto stream = EventStream::start(app.io, exchange, *format);
  auto followed = app.daemon->follow(
      "routes", {{"follow", true}},
      [stream](const json& event) {
        if (!event.contains("routes")) stream->send("route", event);
      },
      [stream] { stream->end(problem("daemon-unavailable"), {}); });
  if (!followed) return stream->end(problem_of(followed.error()), {});
  stream->keep(std::shared_ptr<FrameConnection>(std::move(*followed)));
}

}  // namespace api
