#include "api/metrics.h"

#include "api/version.h"

namespace api {
namespace {

void add_heading(std::string& text, const std::string& name, const char* type, const char* help) {
  text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void add_value(std::string& text, const std::string& name, const char* type, const char* help,
               std::uint64_t value) {
  add_heading(text, name, type, help);
  text += name + " " + std::to_string(value) + "\n";
}

}  // namespace

std::string metrics_text(const Counters& counters, std::size_t running, std::size_t known) {
  std::string text;
  add_heading(text, "airlock_build_info", "gauge", "Which version runs.");
  text += "airlock_build_info{version=\"" + std::string(kVersion) + "\"} 1\n";
  add_heading(text, "airlock_http_requests_total", "counter", "Answered requests.");
  for (const auto& [key, count] : counters.requests) {
    text += "airlock_http_requests_total{operation=\"" + key.first + "\",status=\"" +
            std::to_string(key.second) + "\"} " + std::to_string(count) + "\n";
  }
  add_heading(text, "airlock_execs_total", "counter", "Programs that have ended.");
  for (const auto& [status, count] : counters.execs) {
    text += "airlock_execs_total{status=\"" + status + "\"} " + std::to_string(count) + "\n";
  }
  add_value(text, "airlock_execs_running", "gauge", "Programs that run.", running);
  add_value(text, "airlock_execs_known", "gauge", "Programs whose output is kept.", known);
  add_value(text, "airlock_http_connections", "gauge", "Open connections.", counters.connections);
  add_value(text, "airlock_http_refused_tokens_total", "counter",
            "Requests without a token that is valid.", counters.refused_tokens);
  return text;
}

}  // namespace api
