#include "api/metrics.h"

#include <charconv>

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

/// Seconds, without an exponent.
std::string seconds_text(std::chrono::nanoseconds time) {
  char text[64];
  const double seconds = std::chrono::duration<double>(time).count();
  const auto end = std::to_chars(text, text + sizeof text, seconds, std::chars_format::fixed);
  return {text, end.ptr};
}

void add_histogram(std::string& text, const std::string& name, const std::string& labels,
                   const Histogram& histogram) {
  for (std::size_t i = 0; i < Histogram::kLimits.size(); ++i) {
    text += name + "_bucket{" + labels + ",le=\"" + seconds_text(Histogram::kLimits[i]) + "\"} " +
            std::to_string(histogram.up_to(i)) + "\n";
  }
  const std::string count = std::to_string(histogram.count());
  text += name + "_bucket{" + labels + ",le=\"+Inf\"} " + count + "\n";
  text += name + "_sum{" + labels + "} " + seconds_text(histogram.sum()) + "\n";
  text += name + "_count{" + labels + "} " + count + "\n";
}

// Words of the table of routes need no escapes.
void add_latencies(std::string& text, const Latencies& latencies) {
  const std::string name = "airlock_api_request_duration_seconds";
  add_heading(text, name, "histogram",
              "From the end of a request's head to the beginning of its answer, without streams.");
  for (const auto& [kind, histogram] : latencies.kinds()) {
    const std::string labels = "method=\"" + std::string(kind.method) + "\",route=\"" +
                               std::string(kind.route) + "\",status=\"" +
                               std::to_string(kind.hundreds) + "xx\"";
    add_histogram(text, name, labels, histogram);
  }
}

void add_streams(std::string& text, const Counters& counters) {
  const std::pair<const char*, const Counters::Streams&> kinds[] = {
      {"events", counters.events}, {"websocket", counters.web_sockets}};
  add_heading(text, "airlock_api_streams_total", "counter", "Streams that were begun.");
  for (const auto& [kind, streams] : kinds) {
    text += "airlock_api_streams_total{kind=\"" + std::string(kind) + "\"} " +
            std::to_string(streams.begun) + "\n";
  }
  add_heading(text, "airlock_api_streams_open", "gauge", "Streams that are open.");
  for (const auto& [kind, streams] : kinds) {
    text += "airlock_api_streams_open{kind=\"" + std::string(kind) + "\"} " +
            std::to_string(streams.open) + "\n";
  }
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
  add_latencies(text, counters.latencies);
  add_streams(text, counters);
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
