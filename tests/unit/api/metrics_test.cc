#include "api/metrics.h"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("a histogram's buckets are cumulated, a limit belongs to its own", "[api][metrics]") {
  api::Histogram histogram;
  for (const auto took : {0ns, 500'000ns, 500'001ns, 600'000'000'000ns, 600'000'000'001ns}) {
    histogram.add(took);
  }
  CHECK(histogram.up_to(0) == 2);
  CHECK(histogram.up_to(1) == 3);
  CHECK(histogram.up_to(api::Histogram::kLimits.size() - 2) == 3);
  CHECK(histogram.up_to(api::Histogram::kLimits.size() - 1) == 4);
  CHECK(histogram.count() == 5);
  CHECK(histogram.sum() == 1'200'001'000'002ns);
  CHECK(std::ranges::is_sorted(api::Histogram::kLimits));
}

TEST_CASE("latencies are told by method, route and class of the status", "[api][metrics]") {
  api::Counters counters;
  counters.latencies.add({"GET", "/api/v1/execs/{exec}", 2}, 1ms);
  counters.latencies.add({"GET", "/api/v1/execs/{exec}", 2}, 2s);
  counters.latencies.add({"GET", "/api/v1/execs/{exec}", 4}, 1ms);
  const auto text = api::metrics_text(counters, 0, 0);
  const std::string name = "airlock_api_request_duration_seconds";
  const std::string labels = "{method=\"GET\",route=\"/api/v1/execs/{exec}\",status=\"2xx\"";
  CHECK(has_line(text, "# TYPE " + name + " histogram"));
  CHECK(has_line(text, name + "_bucket" + labels + ",le=\"0.0005\"} 0"));
  CHECK(has_line(text, name + "_bucket" + labels + ",le=\"0.001\"} 1"));
  CHECK(has_line(text, name + "_bucket" + labels + ",le=\"5\"} 2"));
  CHECK(has_line(text, name + "_bucket" + labels + ",le=\"600\"} 2"));
  CHECK(has_line(text, name + "_bucket" + labels + ",le=\"+Inf\"} 2"));
  CHECK(has_line(text, name + "_sum" + labels + "} 2.001"));
  CHECK(has_line(text, name + "_count" + labels + "} 2"));
  CHECK(text.find("status=\"4xx\"") != std::string::npos);
}

TEST_CASE("streams are counted apart", "[api][metrics]") {
  api::Counters counters;
  counters.events = {3, 1};
  const auto text = api::metrics_text(counters, 0, 0);
  CHECK(has_line(text, "airlock_api_streams_total{kind=\"events\"} 3"));
  CHECK(has_line(text, "airlock_api_streams_open{kind=\"events\"} 1"));
  CHECK(has_line(text, "airlock_api_streams_open{kind=\"websocket\"} 0"));
}
