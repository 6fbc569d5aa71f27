#include "tests/bench/api_execs.h"

#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/bench/api_daemon.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"
#include "tests/bench/spawns.h"

namespace bench {
namespace {

using nlohmann::json;

constexpr int kRounds = 500;
constexpr double kSeconds = 2;

/// A way to run `true`. `shell`: the body has a place for the client's own.
struct Way {
  std::string name;
  json body;
  std::string budget;
};

std::vector<Way> ways() {
  return {{"argv `/bin/true`", {{"argv", {"/bin/true"}}}, "p50 ≤ 2 ms"},
          {"`true` in a shell", {{"command", "true"}, {"shell", "c"}}, "p50 ≤ 1 ms"},
          {"`true` in a shell, no checkpoint", {{"command", "true"}, {"shell", "n"}}, "p50 ≤ 1 ms"},
          {"`/bin/true` in a shell", {{"command", "/bin/true"}, {"shell", "c"}}, ""}};
}

/// The body of `way` for a client: each has a shell of its own.
std::string body_for(const Way& way, int client) {
  json body = way.body;
  if (body.contains("shell"))
    body["shell"] = body["shell"].get<std::string>() + std::to_string(client);
  return body.dump();
}

/// The shells of a client; the second holds a pipe, so it has no checkpoints.
void start_shells(HttpClient& client, int number) {
  for (const auto& [shell, command] : {std::pair("c", "true"), std::pair("n", "exec 9> >(cat)")}) {
    const json body = {{"command", command}, {"shell", shell + std::to_string(number)}};
    client.request("POST", kExecPath, body.dump());
  }
}

void run_once(HttpClient& client, const std::string& body) {
  const json result = json::parse(client.request("POST", kExecPath, body));
  require(result.value("exitCode", -1) == 0, result.dump());
}

void measure_latency_of_execs() {
  HttpClient client = ApiDaemon::client();
  start_shells(client, 0);
  const auto all = ways();
  Samples direct;
  Samples floor;
  std::vector<Samples> samples(all.size());
  for (int round = 0; round < kRounds; ++round) {
    double start = now_us();
    spawn_direct({"/bin/true"});
    direct.add(now_us() - start);
    start = now_us();
    client.request("GET", "/health");
    floor.add(now_us() - start);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string body = body_for(all[i], 0);
      start = now_us();
      run_once(client, body);
      samples[i].add(now_us() - start);
    }
  }
  print_heading({"exec, 1 client", "p50 (ms)", "p99 (ms)", "× direct spawn", "budget"});
  const auto row = [&direct](const std::string& name, const Samples& each,
                             const std::string& budget) {
    print_row({name, number(each.median() / 1000, 2), number(each.percentile(0.99) / 1000, 2),
               number(each.median() / direct.median(), 1), budget});
  };
  row("direct spawn of `/bin/true`", direct, "");
  row("GET /health", floor, "");
  for (std::size_t i = 0; i < all.size(); ++i) row(all[i].name, samples[i], all[i].budget);
}

struct Rate {
  double per_second = 0;
  Samples latencies;
};

Rate rate_of(const Way& way, int clients) {
  std::vector<std::future<std::vector<double>>> all;
  const double begin = now_us();
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::async(std::launch::async, [&way, i, begin] {
      std::vector<double> taken;
      HttpClient client = ApiDaemon::client();
      const std::string body = body_for(way, i);
      for (double now = now_us(); now < begin + kSeconds * 1e6;) {
        run_once(client, body);
        const double end = now_us();
        taken.push_back(end - now);
        now = end;
      }
      return taken;
    }));
  }
  Rate rate;
  double count = 0;
  for (auto& each : all) {
    for (const double us : each.get()) rate.latencies.add(us), ++count;
  }
  rate.per_second = count / ((now_us() - begin) / 1e6);
  return rate;
}

void measure_rate_of_execs() {
  constexpr int kMost = 16;
  HttpClient client = ApiDaemon::client();
  for (int i = 0; i < kMost; ++i) start_shells(client, i);
  std::cout << "\n";
  print_heading(
      {"exec", "clients", "per second", "p50 (ms)", "p99 (ms)", "direct spawns per second"});
  for (const int clients : {1, kMost}) {
    const std::string direct = number(spawns_per_second(clients, kSeconds, spawn_direct));
    for (const auto& way : ways()) {
      const Rate rate = rate_of(way, clients);
      print_row({way.name, std::to_string(clients), number(rate.per_second),
                 number(rate.latencies.median() / 1000, 2),
                 number(rate.latencies.percentile(0.99) / 1000, 2), direct});
    }
  }
}

}  // namespace

void measure_execs() {
  measure_latency_of_execs();
  measure_rate_of_execs();
}

}  // namespace bench
