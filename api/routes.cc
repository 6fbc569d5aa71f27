#include "api/routes.h"

#include <algorithm>

#include "api/app.h"
#include "api/channels.h"
#include "api/handlers.h"
#include "api/place.h"

namespace api {

const std::vector<Route>& routes() {
  constexpr auto read = Scope::read;
  constexpr auto exec = Scope::exec;
  constexpr auto admin = Scope::admin;
  static const std::vector<Route> table = {
      {"GET", "/health", "health", {}, get_health},
      {"GET", "/ready", "ready", {}, get_ready},
      {"GET", "/metrics", "metrics", {}, get_metrics},
      {"GET", "/api/v1/openapi.json", "openapi", read, get_openapi},
      {"GET", "/api/v1/info", "info", read, get_info},
      {"GET", "/api/v1/contexts", "listContexts", read, list_contexts},
      {"POST", "/api/v1/contexts", "createContext", admin, create_context},
      {"GET", "/api/v1/contexts/{context}", "getContext", read, get_context},
      {"PATCH", "/api/v1/contexts/{context}", "setContext", admin, set_context},
      {"DELETE", "/api/v1/contexts/{context}", "destroyContext", admin, destroy_context},
      {"GET", "/api/v1/contexts/{context}/env", "getEnv", exec, get_env},
      {"PUT", "/api/v1/contexts/{context}/env", "replaceEnv", exec, put_env},
      {"PATCH", "/api/v1/contexts/{context}/env", "changeEnv", exec, patch_env},
      {"GET", "/api/v1/contexts/{context}/cwd", "getCwd", read, get_cwd},
      {"PUT", "/api/v1/contexts/{context}/cwd", "setCwd", exec, put_cwd},
      {"GET", "/api/v1/contexts/{context}/route", "getRoute", read, get_route},
      {"PUT", "/api/v1/contexts/{context}/route", "setRoute", admin, put_route},
      {"GET", "/api/v1/contexts/{context}/shells", "listShells", read, list_shells},
      {"POST", "/api/v1/contexts/{context}/shells", "startShell", exec, create_shell},
      {"GET", "/api/v1/contexts/{context}/shells/{shell}", "getShell", read, get_shell},
      {"DELETE", "/api/v1/contexts/{context}/shells/{shell}", "endShell", exec, reset_shell},
      {"POST", "/api/v1/contexts/{context}/shells/{shell}:interrupt", "interruptShell", exec,
       interrupt_shell},
      {"POST", "/api/v1/contexts/{context}/shells/{shell}:reset", "resetShell", exec, reset_shell},
      {"GET", "/api/v1/contexts/{context}/ports", "listContextPorts", read, list_context_ports},
      {"GET", "/api/v1/contexts/{context}/ports/{port}:wait", "waitForPort", read, wait_for_port},
      {"POST", "/api/v1/contexts/{context}/exec", "exec", exec, post_exec},
      {"GET", "/api/v1/contexts/{context}/execs", "listExecs", read, list_execs},
      {"POST", "/api/v1/contexts/{context}/route:explain", "explainRoute", read, explain_route},
      {"GET", "/api/v1/contexts/{context}/files", "readFile", exec, get_file},
      {"PUT", "/api/v1/contexts/{context}/files", "writeFile", exec, put_file, true},
      {"DELETE", "/api/v1/contexts/{context}/files", "removeFile", exec, remove_file},
      {"GET", "/api/v1/contexts/{context}/files:stat", "statFile", read, stat_file},
      {"GET", "/api/v1/contexts/{context}/files:list", "listFiles", read, list_files},
      {"POST", "/api/v1/contexts/{context}/files:mkdir", "makeFolder", exec, make_folder},
      {"POST", "/api/v1/contexts/{context}/files:move", "moveFile", exec, move_file},
      {"GET", "/api/v1/execs/{exec}", "getExec", read, get_exec},
      {"DELETE", "/api/v1/execs/{exec}", "forgetExec", exec, delete_exec},
      {"GET", "/api/v1/execs/{exec}/output", "getOutput", read, get_output},
      {"POST", "/api/v1/execs/{exec}/stdin", "writeStdin", exec, post_stdin},
      {"POST", "/api/v1/execs/{exec}/signal", "signalExec", exec, post_signal},
      {"POST", "/api/v1/execs/{exec}/resize", "resizeExec", exec, post_resize},
      {"GET", "/api/v1/ports", "listPorts", read, list_ports},
      {"GET", "/api/v1/audit/events", "auditEvents", admin, get_audit_events},
      {"GET", "/api/v1/execs/{exec}/attach", "attachExec", read, attach_exec},
      {"GET", "/api/v1/contexts/{context}/terminals", "listTerminals", read, list_terminals},
      {"POST", "/api/v1/contexts/{context}/terminals", "createTerminal", exec, create_terminal},
      {"GET", "/api/v1/terminals/{terminal}", "getTerminal", read, get_terminal},
      {"DELETE", "/api/v1/terminals/{terminal}", "endTerminal", exec, end_terminal},
      {"POST", "/api/v1/terminals/{terminal}/reset", "resetTerminal", exec, reset_terminal},
      {"GET", "/api/v1/terminals/{terminal}/attach", "attachTerminal", read, attach_terminal},
      {"GET", "/api/v1/namespaces/{namespace}/pods/{context}/exec", "kubernetesExec", exec,
       kubernetes_exec},
      {"GET", "/api/v1/routes/events", "routeEvents", admin, get_route_events},
  };
  return table;
}

std::optional<std::map<std::string, std::string>> match(std::string_view pattern,
                                                        std::string_view path) {
  std::map<std::string, std::string> params;
  while (!pattern.empty() && !path.empty()) {
    if (pattern.front() != '{') {
      if (pattern.front() != path.front()) return std::nullopt;
      pattern.remove_prefix(1);
      path.remove_prefix(1);
      continue;
    }
    const auto close = pattern.find('}');
    // To the next '/', or to the word after ':' that says what is to be done.
    const auto rest = pattern.substr(close + 1);
    const auto verb = rest.substr(0, std::min(rest.find('/'), rest.size()));
    auto value = path.substr(0, std::min(path.find('/'), path.size()));
    if (!value.ends_with(verb)) return std::nullopt;
    value.remove_suffix(verb.size());
    if (value.empty()) return std::nullopt;
    params.emplace(pattern.substr(1, close - 1), value);
    pattern.remove_prefix(close + 1);
    path.remove_prefix(value.size());
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return params;
}

const Route* find_route(const std::string& method, const std::string& path,
                        std::map<std::string, std::string>& params,
                        std::vector<std::string>& allowed) {
  for (const auto& route : routes()) {
    auto matched = match(route.pattern, path);
    if (!matched) continue;
    if (method == route.method || (method == "HEAD" && std::string_view(route.method) == "GET")) {
      params = std::move(*matched);
      return &route;
    }
    allowed.emplace_back(route.method);
  }
  return nullptr;
}

namespace {

/// The context that a request is about: named in its path, or that of the exec named there.
std::string context_of(const App& app, const Request& request) {
  if (const auto& context = request.param("context"); !context.empty()) return context;
  if (const auto& id = request.param("terminal"); !id.empty()) {
    const auto terminal = app.terminals->find(id);
    return terminal ? terminal->exec()->facts().context : std::string();
  }
  const auto& id = request.param("exec");
  if (id.empty()) return {};
  const auto exec = app.execs->find(id);
  return exec ? exec->facts().context : std::string();
}

/// What comes by a context's own door without a token may run programs there, and nothing else.
bool is_for_contexts_themselves(const Route& route, const std::string& context) {
  constexpr std::string_view kSettings[] = {"replaceEnv", "changeEnv", "setCwd"};
  constexpr std::string_view kAboutAll[] = {"openapi", "info", "listContexts"};
  const std::string_view operation = route.operation;
  if (context.empty()) return std::ranges::find(kAboutAll, operation) != std::end(kAboutAll);
  return std::ranges::find(kSettings, operation) == std::end(kSettings);
}

std::optional<Problem> admit_token(App& app, Request& request, const Route* route) {
  const auto now = std::chrono::steady_clock::now();
  std::string secret(bearer_of(request.header("authorization")));
  if (secret.empty() && request.is_upgrade) {
    secret = read_subprotocols(request.header("sec-websocket-protocol")).secret;
  }
  const bool is_by_door = secret.empty() && request.place && !request.place->door().empty();
  request.token = secret.empty() && request.place ? request.place->own_token() : nullptr;
  if (!request.token) request.token = app.tokens.find(secret);
  if (!request.token) {
    ++app.counters.refused_tokens;
    if (!app.wrong_tokens.take(request.client, now)) return problem("too-many-requests");
    return problem("unauthorized", app.tokens.count() == 0 ? "no tokens are configured" : "");
  }
  if (!app.requests.take(request.token->name, now)) return problem("too-many-requests");
  if (route == nullptr) return std::nullopt;
  if (!request.token->may(*route->scope)) {
    return problem("forbidden-scope", "the token's scope is not enough");
  }
  // One that names no context concerns all of them.
  const std::string context = context_of(app, request);
  if (!request.token->reaches(context)) {
    return problem("forbidden-scope", "the token is not for this context");
  }
  if (is_by_door && !is_for_contexts_themselves(*route, context)) {
    return problem("forbidden-scope", "this needs a token");
  }
  const bool concerns_all =
      context.empty() && request.param("exec").empty() && request.param("terminal").empty();
  if (concerns_all && *route->scope == Scope::admin && route->handler != create_context &&
      !request.token->reaches_all()) {
    return problem("forbidden-scope", "the token is not for all contexts");
  }
  return std::nullopt;
}

std::optional<Problem> check(App& app, Request& request, const Route*& route) {
  if (auto wrong = check_origin(request, app.rules)) return wrong;
  std::vector<std::string> allowed;
  route = find_route(request.method, request.path, request.params, allowed);
  // Who has no token does not learn what there is.
  const bool is_open = route != nullptr && !route->scope;
  if (!is_open) {
    if (auto wrong = admit_token(app, request, route)) return wrong;
  }
  if (route != nullptr) return std::nullopt;
  if (allowed.empty()) return problem("not-found");
  std::string list;
  for (const auto& method : allowed) list += (list.empty() ? "" : ", ") + method;
  return problem("method-not-allowed", "it takes " + list);
}

}  // namespace

std::optional<Problem> admit(App& app, Request& request, const Route*& route) {
  auto wrong = check(app, request, route);
  if (wrong && (wrong->status == 401 || wrong->status == 403 || wrong->status == 429)) {
    app.refusals->add({wrong->code, request.client, request.token ? request.token->name : "",
                       route != nullptr ? route->operation : ""});
  }
  return wrong;
}

}  // namespace api
