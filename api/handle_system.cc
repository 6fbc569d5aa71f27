#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/handlers.h"
#include "api/metrics.h"
#include "api/openapi.h"
#include "api/version.h"

namespace api {

using nlohmann::json;

// Alive, and able to ask the daemon, which tells what isolation there really is.
void get_health(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask("info", json::object(), [exchange](const base::Result<json>& answer) {
    if (!answer) {
      return exchange->reply(json_response({{"status", "failing"}}, 503));
    }
    exchange->reply(json_response({{"status", "ok"},
                                   {"version", kVersion},
                                   {"isolation",
                                    {{"requested", answer->value("requiredTier", json())},
                                     {"effective", answer->value("tier", "")},
                                     {"isolated", answer->value("isolated", false)},
                                     {"development", answer->value("development", false)}}}}));
  });
}

void get_ready(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask("info", json::object(), [exchange](const base::Result<json>& answer) {
    exchange->reply(json_response({{"ready", answer.has_value()}}, answer ? 200 : 503));
  });
}

void get_metrics(App& app, const std::shared_ptr<Exchange>& exchange) {
  exchange->reply({200,
                   "text/plain; version=0.0.4; charset=utf-8",
                   metrics_text(app.counters, app.execs->running(), app.execs->known()),
                   {}});
}

void get_info(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask("info", json::object(), [exchange](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    json told = {{"version", kVersion},
                 {"api", "v1"},
                 {"tier", answer->value("tier", "")},
                 {"isolated", answer->value("isolated", false)},
                 {"whyNotStronger", answer->value("whyNotStronger", json::array())},
                 {"development", answer->value("development", false)},
                 {"token",
                  {{"name", exchange->request().token->name},
                   {"contexts", exchange->request().token->contexts}}}};
    exchange->reply(json_response(told));
  });
}

void get_openapi(App&, const std::shared_ptr<Exchange>& exchange) {
  exchange->reply({200, "application/json", std::string(kOpenApi), {}});
}

// What airlock holds for its services: nobody else gets these.
void list_ports(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask("services", json::object(), [exchange](const base::Result<json>& answer) {
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    json items = json::array();
    for (const auto& service : answer->value("services", json::array())) {
      for (json port : service.value("ports", json::array())) {
        port["service"] = service.value("name", "");
        port["state"] = service.value("state", "");
        items.push_back(std::move(port));
      }
    }
    exchange->reply(json_response({{"items", std::move(items)}}));
  });
}

}  // namespace api
