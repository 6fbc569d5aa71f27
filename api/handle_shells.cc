// Persistent shells as resources. Commands are run in them by exec (handle_exec.cc).

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// A shell as clients see it: its command by the exec that asked for it, null if that is none of
/// ours.
json described(const App& app, const std::string& context, const json& shell) {
  json told = {{"name", shell.value("name", "")},
               {"uid", shell.value("uid", 0u)},
               {"engine", shell.value("engine", "")},
               {"pid", shell.value("pid", 0)},
               {"cwd", shell.value("cwd", "")},
               {"isBusy", !shell.value("job", json()).is_null()},
               {"exec", nullptr},
               {"runningMs", shell.value("runningMs", std::uint64_t{0})},
               {"waiting", shell.value("waiting", std::uint64_t{0})},
               {"background", json::array()}};
  for (const auto& pid : shell.value("background", json::array())) {
    told["background"].push_back({{"pid", pid}});
  }
  if (!told["isBusy"].get<bool>()) return told;
  for (const auto& exec : app.execs->in_context(context)) {
    if (exec->facts().job == shell.value("job", std::uint64_t{0})) told["exec"] = exec->facts().id;
  }
  return told;
}

/// Has the daemon do something with the shell of the path; answers with what `tell` makes of its
/// answer.
void order(App& app, const std::shared_ptr<Exchange>& exchange, const std::string& verb,
           json (*tell)(const json& answer)) {
  const auto& context = exchange->request().param("context");
  const auto& shell = exchange->request().param("shell");
  if (!is_shell_name(shell)) return refuse(*exchange, problem("shell-not-found"));
  app.daemon->ask_apart(verb, {{"context", context}, {"shell", shell}},
                        [&app, exchange, tell](const base::Result<json>& answer) {
                          if (answer) return exchange->reply(json_response(tell(*answer)));
                          if (answer.error().code != ENOENT)
                            return refuse(*exchange, problem_of(answer.error()));
                          // No such shell, or no such context.
                          app.daemon->ask("ctx.inspect",
                                          {{"context", exchange->request().param("context")}},
                                          [exchange](const base::Result<json>& there) {
                                            refuse(*exchange, there ? problem("shell-not-found")
                                                                    : problem_of(there.error()));
                                          });
                        });
}

}  // namespace

namespace {

/// Answers with the shell `name` that the API's commands run in, if there is one.
void answer_shell(App& app, const std::shared_ptr<Exchange>& exchange, const std::string& name,
                  unsigned status) {
  const auto& context = exchange->request().param("context");
  app.daemon->ask_apart(
      "shells", {{"context", context}},
      [&app, exchange, name, status](const base::Result<json>& answer) {
        if (!answer) return refuse(*exchange, problem_of(answer.error()));
        for (const auto& shell : answer->value("shells", json::array())) {
          if (shell.value("name", "") != name || !shell.value("isOwn", false)) continue;
          const auto& context = exchange->request().param("context");
          return exchange->reply(json_response(described(app, context, shell), status));
        }
        refuse(*exchange, problem("shell-not-found"));
      });
}

}  // namespace

void get_shell(App& app, const std::shared_ptr<Exchange>& exchange) {
  answer_shell(app, exchange, exchange->request().param("shell"), 200);
}

void create_shell(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  const std::string name = fields.text("name").value_or("default");
  if (!is_shell_name(name)) fields.fail("name", "expected a name as contexts have");
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  const auto& context = exchange->request().param("context");
  app.daemon->ask("shell.start", {{"context", context}, {"shell", name}},
                  [&app, exchange, name](const base::Result<json>& answer) {
                    if (!answer) return refuse(*exchange, problem_of(answer.error()));
                    const bool is_new = answer->value("started", false);
                    answer_shell(app, exchange, name, is_new ? 201 : 200);
                  });
}

void list_shells(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto& context = exchange->request().param("context");
  app.daemon->ask_apart("shells", {{"context", context}},
                        [&app, exchange](const base::Result<json>& answer) {
                          if (!answer) return refuse(*exchange, problem_of(answer.error()));
                          const auto& context = exchange->request().param("context");
                          std::vector<json> shells = answer->value("shells", std::vector<json>{});
                          // They have come as their hosts answered.
                          std::ranges::sort(shells, {}, [](const json& shell) {
                            return std::pair(shell.value("name", ""), shell.value("uid", 0u));
                          });
                          json items = json::array();
                          for (const auto& shell : shells) {
                            items.push_back(described(app, context, shell));
                          }
                          exchange->reply(json_response({{"items", std::move(items)}}));
                        });
}

void interrupt_shell(App& app, const std::shared_ptr<Exchange>& exchange) {
  order(app, exchange, "shell.interrupt", [](const json& answer) {
    return json{{"interrupted", !answer.value("job", json()).is_null()}};
  });
}

void reset_shell(App& app, const std::shared_ptr<Exchange>& exchange) {
  order(app, exchange, "shell.reset", [](const json& answer) {
    return json{{"killed", answer.value("killed", 0)}, {"survivors", answer.value("survivors", 0)}};
  });
}

}  // namespace api
