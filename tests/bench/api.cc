#include "tests/bench/api.h"

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/bench/api_daemon.h"
#include "tests/bench/api_execs.h"
#include "tests/bench/api_output.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"

namespace bench {
namespace {

using nlohmann::json;

constexpr int kRunning = 100;

/// RSS while so many run, KiB.
double rss_with_execs(const ApiDaemon& api) {
  HttpClient client = ApiDaemon::client();
  std::vector<std::string> execs;
  for (int i = 0; i < kRunning; ++i) {
    const json body = {{"argv", {"/bin/sleep", "1000"}}, {"yieldMs", 0}};
    execs.push_back(json::parse(client.request("POST", kExecPath, body.dump()))["id"]);
  }
  const double running = api.rss_kib();
  for (const auto& id : execs) {
    const std::string path = "/api/v1/execs/" + id;
    client.request("POST", path + "/signal", R"({"signal": "SIGKILL"})");
    client.request("GET", path + "?waitMs=60000");
  }
  return running;
}

void measure(const std::string& folder) {
  const ApiDaemon api(folder);
  const double idle = api.rss_kib();
  const double running = rss_with_execs(api);
  measure_execs();
  measure_output(api);
  measure_terminal();
  std::cout << "\n";
  print_heading({"airlock-api", "RSS (MB)", "budget"});
  print_row({"just started", megabytes(idle), "≤ 15"});
  print_row({std::to_string(kRunning) + " execs running", megabytes(running), ""});
  print_row({"after all this", megabytes(api.rss_kib()), ""});
}

}  // namespace

bool measure_api(const std::string& folder) {
  std::cout << "\n### HTTP API\n\n" << std::flush;
  if (!enter_own_network()) {
    std::cout << "NOT RUN: needs CAP_SYS_ADMIN for a network namespace\n";
    return true;
  }
  try {
    measure(folder);
    return true;
  } catch (const std::exception& error) {
    std::cerr << "airlock-bench: " << error.what() << "\n";
    return false;
  }
}

}  // namespace bench
