#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/attachment.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// How the client wants to be attached, from the query and the subprotocols it offers.
struct AttachRequest {
  AttachOptions options;
  std::string subprotocol;
  bool takes_over = false;
};

/// The value of a query field, which must be one of two words; the first is the default.
Checked<bool> is_second(const Request& request, const char* name, const char* first,
                        const char* second) {
  const auto& value = request.query_value(name);
  if (!value.empty() && value != first && value != second) {
    return tl::unexpected<Problem>(
        problem("invalid-request", std::string(name) + ": expected " + first + " or " + second));
  }
  return value == second;
}

/// Only what Kubernetes speaks, if `is_kubernetes`.
Checked<AttachRequest> read_protocol(const Request& request, bool is_kubernetes) {
  if (!request.is_upgrade) return tl::unexpected<Problem>(problem("upgrade-required"));
  auto offered = read_subprotocols(request.header("sec-websocket-protocol"));
  if (!offered.framing || (is_kubernetes && *offered.framing != Framing::kubernetes)) {
    return tl::unexpected<Problem>(problem(
        "invalid-request", is_kubernetes ? "Sec-WebSocket-Protocol: expected v5.channel.k8s.io"
                                         : "Sec-WebSocket-Protocol: expected airlock.v1"));
  }
  AttachRequest read;
  read.options.framing = *offered.framing;
  read.subprotocol = std::move(offered.name);
  return read;
}

Checked<AttachRequest> read_attach_request(const Request& request) {
  auto read = read_protocol(request, false);
  if (!read) return read;
  const auto is_viewer = is_second(request, "role", "writer", "viewer");
  const auto blocks = is_second(request, "slowReader", "skip", "block");
  const auto takes_over = is_second(request, "takeover", "0", "1");
  const auto& since = request.query_value("since");
  const auto cursor = since.empty() ? Cursor{} : parse_cursor(since);
  for (const auto* each : {&is_viewer, &blocks, &takes_over}) {
    if (!*each) return tl::unexpected<Problem>(each->error());
  }
  if (!cursor) return tl::unexpected<Problem>(problem("invalid-request", "since: no cursor"));
  read->options.is_writer = !*is_viewer;
  read->options.is_waited_for = *blocks;
  read->options.from = *cursor;
  read->takes_over = *takes_over;
  return read;
}

void answer(App& app, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<Audience>& audience, const AttachRequest& wanted) {
  exchange->upgrade(wanted.subprotocol, {{"X-Airlock-Exec", audience->exec()->facts().id}},
                    [&app, audience, options = wanted.options](auto socket) {
                      Attachment::start(app.io, std::move(socket), audience, options);
                    });
}

void attach(App& app, const std::shared_ptr<Exchange>& exchange,
            const std::shared_ptr<Audience>& audience) {
  const auto& request = exchange->request();
  const auto wanted = read_attach_request(request);
  if (!wanted) return refuse(*exchange, wanted.error());
  const auto& options = wanted->options;
  if (options.is_writer && !request.token->may(Scope::exec)) {
    return refuse(*exchange, problem("forbidden-scope", "its scope is for role=viewer"));
  }
  const auto& exec = *audience->exec();
  if (options.from[Exec::out] > exec.output(Exec::out).end() ||
      options.from[Exec::err] > exec.output(Exec::err).end()) {
    return refuse(*exchange, problem("invalid-request", "since: not a cursor of this exec"));
  }
  if (audience->is_full()) return refuse(*exchange, problem("too-many-requests"));
  if (options.is_writer && audience->has_writer() && !wanted->takes_over) {
    return refuse(*exchange, problem("terminal-busy", "takeover=1 takes its place"));
  }
  answer(app, exchange, audience, *wanted);
}

bool is_set(const Request& request, const char* name) {
  const auto& value = request.query_value(name);
  return value == "true" || value == "1";
}

/// What a client of Kubernetes wants to be run, as an exec request's or a terminal's body.
json kubernetes_body(const Request& request) {
  json body = {{"argv", request.command}};
  if (!is_set(request, "tty") && is_set(request, "stdin")) body["stdin"] = "open";
  return body;
}

base::Result<std::shared_ptr<Audience>> start_for_kubernetes(App& app, const Request& request,
                                                             TerminalOrder order) {
  order.exec.asked_by = asked_by(app, request);
  if (is_set(request, "tty"))
    return app.terminals->create(std::move(order), request.param("context"));
  auto exec = app.execs->start(order.exec, request.param("context"));
  if (!exec) return tl::unexpected<base::Error>(exec.error());
  return app.terminals->of_exec(*exec);
}

Checked<TerminalOrder> read_kubernetes_order(const App& app, const Request& request) {
  const json body = kubernetes_body(request);
  if (is_set(request, "tty")) return read_terminal_order(body, app.execs->new_shell());
  auto exec = read_exec_order(body);
  if (!exec) return tl::unexpected<Problem>(exec.error());
  return TerminalOrder{std::move(*exec)};
}

}  // namespace

void attach_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = app.execs->find(exchange->request().param("exec"));
  if (!exec) return refuse(*exchange, problem("exec-not-found"));
  attach(app, exchange, app.terminals->of_exec(exec));
}

void attach_terminal(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto terminal = app.terminals->find(exchange->request().param("terminal"));
  if (!terminal) return refuse(*exchange, problem("terminal-not-found"));
  attach(app, exchange, terminal);
}

void kubernetes_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto& request = exchange->request();
  auto wanted = read_protocol(request, true);
  if (!wanted) return refuse(*exchange, wanted.error());
  auto order = read_kubernetes_order(app, request);
  if (!order) return refuse(*exchange, order.error());
  // Its clients count on every byte: they copy files so.
  wanted->options.is_waited_for = true;
  wanted->options.wants = {is_set(request, "stdout"), is_set(request, "stderr")};
  app.daemon->ask("ctx.inspect", {{"context", request.param("context")}},
                  [&app, exchange, wanted = std::move(*wanted),
                   order = std::move(*order)](const base::Result<json>& there) {
                    if (!there) return refuse(*exchange, problem_of(there.error()));
                    const auto audience = start_for_kubernetes(app, exchange->request(), order);
                    if (!audience) return refuse(*exchange, problem_of(audience.error()));
                    answer(app, exchange, *audience, wanted);
                  });
}

}  // namespace api
