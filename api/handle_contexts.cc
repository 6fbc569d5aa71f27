#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/fields.h"
#include "api/handlers.h"
#include "api/once.h"

namespace api {

using nlohmann::json;

namespace {

/// A context as clients see it: of the daemon's description, what is not about the machine.
json described(const json& context) {
  json told = json::object();
  for (const char* key :
       {"name", "cwd", "childContext", "routeChild", "enforce", "isolation", "rootfs", "envNames",
        "user", "tier", "lacks", "integrity", "persistent", "limits", "ttlMs", "ttlRemainingMs",
        "idleTimeoutMs", "idleRemainingMs", "apiSocket"}) {
    if (const auto found = context.find(key); found != context.end()) told[key] = *found;
  }
  return told;
}

Response context_response(const json& context, unsigned status = 200) {
  auto response = json_response(described(context), status);
  if (status == 201) {
    response.headers.emplace_back("Location", "/api/v1/contexts/" + context.value("name", ""));
  }
  return response;
}

/// Answers with the context of the daemon's answer, or why there is none.
DaemonClient::Answer answer_context(std::shared_ptr<Exchange> exchange) {
  return [exchange = std::move(exchange)](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    exchange->reply(context_response(answer->value("context", json::object())));
  };
}

/// An object of strings and, to remove a name, nulls.
void read_env(Fields& fields, json& target) {
  const json* env = fields.find("env");
  if (env == nullptr) return;
  if (const char* wrong = what_is_wrong_with_env(*env)) return fields.fail("env", wrong);
  target["env"] = *env;
}

void read_limits(Fields& fields, json& target) {
  const json* limits = fields.find("limits");
  if (limits == nullptr) return;
  if (!limits->is_object()) return fields.fail("limits", "expected an object of numbers");
  Fields part(*limits, "/limits");
  for (const char* name : {"pids", "memory", "cpuHundredths", "openFiles", "tmpfs", "execTimeMs"}) {
    if (const auto value = part.number(name, 1, 1ull << 53)) target["limits"][name] = *value;
  }
  fields.take_errors(part);
}

/// A null in `body` is told as such: for ever.
void read_lifespan(Fields& fields, const json& body, json& target) {
  constexpr std::uint64_t kLongest = 365ull * 24 * 3600 * 1000;
  for (const char* name : {"ttlMs", "idleTimeoutMs"}) {
    if (const auto value = fields.number(name, 1, kLongest)) target[name] = *value;
    if (body.contains(name) && body[name].is_null()) target[name] = nullptr;
  }
}

void copy_text(Fields& fields, json& target, const char* name) {
  if (auto text = fields.text(name)) target[name] = std::move(*text);
}

Checked<json> read_spec(const json& body) {
  json spec = json::object();
  Fields fields(body);
  for (const char* name :
       {"name", "cwd", "childContext", "isolation", "rootfs", "enforce", "user"}) {
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
  read_limits(fields, spec);
  if (const auto persistent = fields.boolean("persistent")) spec["persistent"] = *persistent;
  if (const auto door = fields.boolean("apiSocket")) spec["apiSocket"] = *door;
  read_lifespan(fields, body, spec);
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
  if (const auto persistent = fields.boolean("persistent")) changes["persistent"] = *persistent;
  read_lifespan(fields, body, changes);
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
  const auto once = begin_once(app, *exchange);
  if (!once) return;
  app.daemon->ask("ctx.create", {{"spec", std::move(*spec)}},
                  [&app, exchange, name = once->name](const base::Result<json>& answer) {
                    if (!answer) {
                      app.idempotency.drop(name);
                      return refuse(*exchange, problem_of(answer.error()));
                    }
                    auto response = context_response(answer->at("context"), 201);
                    app.idempotency.keep_response(name, response);
                    exchange->reply(std::move(response));
                  });
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

}  // namespace api
