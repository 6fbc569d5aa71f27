// Where and with what a context's programs start: environment, working folder, route.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/fields.h"
#include "api/handlers.h"
#include "api/inside.h"

namespace api {

using nlohmann::json;

namespace {

using Then = std::function<void(const json& context)>;

/// Asks the daemon about the context of the path, and refuses if there is none.
void with_context(App& app, const std::shared_ptr<Exchange>& exchange, Then then) {
  app.daemon->ask("ctx.inspect", {{"context", exchange->request().param("context")}},
                  [exchange, then = std::move(then)](const base::Result<json>& answer) {
                    if (!answer) return refuse(*exchange, problem_of(answer.error()));
                    then(answer->at("context"));
                  });
}

void change(App& app, const std::shared_ptr<Exchange>& exchange, json changes, Then then) {
  app.daemon->ask(
      "ctx.set",
      {{"context", exchange->request().param("context")}, {"changes", std::move(changes)}},
      [exchange, then = std::move(then)](const base::Result<json>& answer) {
        if (!answer) return refuse(*exchange, problem_of(answer.error()));
        then(answer->at("context"));
      });
}

/// Of what env(1) printed with -0, the variables in `names`.
json variables_in(const std::string& text, const std::vector<std::string>& names) {
  json found = json::object();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find('\0', at), text.size());
    const std::string entry = text.substr(at, stop - at);
    at = stop + 1;
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string name = entry.substr(0, equals);
    if (equals < entry.size() && std::ranges::find(names, name) != names.end()) {
      found[name] = entry.substr(equals + 1);
    }
  }
  return found;
}

Checked<json> read_variables(const Request& request) {
  auto body = read_body(request);
  if (!body) return body;
  if (const char* wrong = what_is_wrong_with_env(*body)) {
    return tl::unexpected<Problem>(problem("invalid-request", wrong));
  }
  return body;
}

void tell_names(const std::shared_ptr<Exchange>& exchange, const json& context) {
  exchange->reply(json_response({{"names", context.value("envNames", json::array())}}));
}

}  // namespace

// A program there is asked: the daemon tells nobody what values are.
void get_env(App& app, const std::shared_ptr<Exchange>& exchange) {
  with_context(app, exchange, [&app, exchange](const json& context) {
    auto names = context.value("envNames", std::vector<std::string>{});
    run_inside(app, exchange->request().param("context"), {"env", "-0"}, "/",
               [exchange, names = std::move(names)](const Checked<Printed>& printed) {
                 if (!printed) return refuse(*exchange, printed.error());
                 if (!printed->is_success) return refuse(*exchange, problem("not-supported"));
                 exchange->reply(json_response(variables_in(printed->out, names)));
               });
  });
}

void put_env(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto env = read_variables(exchange->request());
  if (!env) return refuse(*exchange, env.error());
  with_context(app, exchange, [&app, exchange, env = *env](const json& context) {
    json changes = env;
    for (const auto& name : context.value("envNames", std::vector<std::string>{})) {
      changes.emplace(name, nullptr);
    }
    change(app, exchange, {{"env", std::move(changes)}},
           [exchange](const json& changed) { tell_names(exchange, changed); });
  });
}

void patch_env(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto env = read_variables(exchange->request());
  if (!env) return refuse(*exchange, env.error());
  change(app, exchange, {{"env", std::move(*env)}},
         [exchange](const json& changed) { tell_names(exchange, changed); });
}

void get_cwd(App& app, const std::shared_ptr<Exchange>& exchange) {
  with_context(app, exchange, [&app, exchange](const json& context) {
    const std::string cwd = context.value("cwd", "/");
    if (!context.value("persistent", true)) return exchange->reply(json_response({{"cwd", cwd}}));
    app.daemon->ask_apart("shells", {{"context", context.value("name", "")}},
                          [exchange, cwd](const base::Result<json>& answer) {
                            if (!answer) return refuse(*exchange, problem_of(answer.error()));
                            std::string found = cwd;
                            for (const auto& shell : answer->value("shells", json::array())) {
                              const std::string folder = shell.value("cwd", "");
                              if (shell.value("name", "") == "default" && !folder.empty()) {
                                found = folder;
                              }
                            }
                            exchange->reply(json_response({{"cwd", found}}));
                          });
  });
}

// The context's own cd(1) says whether that folder is there.
void put_cwd(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  const auto cwd = fields.text("cwd");
  if (!cwd || !cwd->starts_with('/')) fields.fail("cwd", "expected an absolute path");
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  with_context(app, exchange, [&app, exchange, cwd = *cwd](const json& context) {
    run_inside(app, context.value("name", ""), {"sh", "-c", "cd -- \"$1\" && pwd", "sh", cwd}, "/",
               [&app, exchange](const Checked<Printed>& printed) {
                 if (!printed) return refuse(*exchange, printed.error());
                 std::string folder = printed->out;
                 if (!printed->is_success || !folder.ends_with('\n')) {
                   return refuse(*exchange, problem("cwd-not-found"));
                 }
                 folder.pop_back();
                 change(app, exchange, {{"cwd", folder}}, [exchange](const json& changed) {
                   exchange->reply(json_response({{"cwd", changed.value("cwd", "")}}));
                 });
               });
  });
}

namespace {

void tell_route(const std::shared_ptr<Exchange>& exchange, const json& context) {
  json told = json::object();
  for (const char* key : {"childContext", "routeChild", "enforce", "enforcement"}) {
    told[key] = context.value(key, json());
  }
  exchange->reply(json_response(told));
}

}  // namespace

void get_route(App& app, const std::shared_ptr<Exchange>& exchange) {
  with_context(app, exchange, [exchange](const json& context) { tell_route(exchange, context); });
}

void put_route(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  const auto child = fields.text("childContext");
  if (!child) fields.fail("childContext", "expected the name of a context");
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  change(app, exchange, {{"childContext", *child}},
         [exchange](const json& context) { tell_route(exchange, context); });
}

}  // namespace api
