#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// The terminal of the path; null if it was refused.
std::shared_ptr<Audience> find_or_refuse(App& app, Exchange& exchange) {
  auto terminal = app.terminals->find(exchange.request().param("terminal"));
  if (!terminal) refuse(exchange, problem("terminal-not-found"));
  return terminal;
}

}  // namespace

void list_terminals(App& app, const std::shared_ptr<Exchange>& exchange) {
  json items = json::array();
  for (const auto& terminal : app.terminals->in_context(exchange->request().param("context"))) {
    items.push_back(to_json(*terminal));
  }
  exchange->reply(json_response({{"items", std::move(items)}}));
}

void create_terminal(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  auto order = read_terminal_order(*body, app.execs->new_shell());
  if (!order) return refuse(*exchange, order.error());
  const std::string context = exchange->request().param("context");
  app.daemon->ask(
      "ctx.inspect", {{"context", context}},
      [&app, exchange, context, order = std::move(*order)](const base::Result<json>& there) {
        if (!there) return refuse(*exchange, problem_of(there.error()));
        TerminalOrder known = order;
        known.exec.asked_by = asked_by(app, exchange->request());
        const auto terminal = app.terminals->create(std::move(known), context);
        if (!terminal) return refuse(*exchange, problem_of(terminal.error()));
        exchange->reply(json_response(to_json(**terminal), 201));
      });
}

void get_terminal(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto terminal = find_or_refuse(app, *exchange);
  if (terminal) exchange->reply(json_response(to_json(*terminal)));
}

void end_terminal(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto terminal = find_or_refuse(app, *exchange);
  if (!terminal) return;
  terminal->hang_up();
  exchange->reply({204, "", "", {}});
}

void reset_terminal(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto terminal = find_or_refuse(app, *exchange);
  if (!terminal) return;
  const auto done = app.terminals->reset(*terminal, asked_by(app, exchange->request()));
  if (!done) {
    return refuse(*exchange, problem_of(done.error()));
  }
  exchange->reply(json_response(to_json(*terminal)));
}

}  // namespace api
