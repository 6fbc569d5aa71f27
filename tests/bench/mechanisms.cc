#include "tests/bench/mechanisms.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/bench/measure.h"

namespace bench {
namespace {

using nlohmann::json;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) std::exit(1);
  char block[4096];
  while (const std::size_t size = ::fread(block, 1, sizeof block, pipe)) text.append(block, size);
  if (::pclose(pipe) != 0) {
    std::cerr << command << " failed\n";
    std::exit(1);
  }
  return text;
}

/// How each row's agent is started; bare first.
std::map<std::string, std::string> ways(const std::string& airlock) {
  std::map<std::string, std::string> found = {{"", ""}};
  const json told = json::parse(output_of(airlock + " -o json doctor"), nullptr, false);
  for (const auto& each : told["enforcement"]["mechanisms"]) {
    const std::string name = each["mechanism"];
    if (each["works"]) found[name] = airlock + " run --enforce " + name + " -- ";
  }
  return found;
}

struct Costs {
  Samples spawn;
  Samples start_ms;
  Samples start_in_daemon_ms;
};

double timed_ms(const std::string& command) {
  const double start = now_us();
  output_of(command);
  return (now_us() - start) / 1000;
}

/// A daemon with a context of agents for each mechanism.
class Daemon {
 public:
  Daemon(std::string airlock, const std::map<std::string, std::string>& ways)
      : airlock_(std::move(airlock)) {
    if (::mkdtemp(folder_) == nullptr) std::exit(1);
    std::string contexts = "user: {cwd: /tmp}";
    for (const auto& [name, command] : ways) {
      if (name.empty()) continue;
      contexts += ", at-" + name + ": {cwd: /tmp, child_context: user, enforce: " + name + "}";
    }
    const std::string file = std::string(folder_) + "/config.yaml";
    output_of("echo 'contexts: {" + contexts + "}' >" + file);
    output_of(airlock_ + at() + " up --config " + file + " 2>&1");
  }
  ~Daemon() {
    output_of(airlock_ + at() + " down");
    output_of(std::string("rm -rf ") + folder_);
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::string run(const std::string& name) const {
    return airlock_ + " run" + at() + " --in at-" + name + " -- ";
  }

 private:
  std::string at() const { return " --runtime-dir " + std::string(folder_); }

  std::string airlock_;
  char folder_[30] = "/tmp/airlock-bench-XXXXXX";
};

}  // namespace

void measure_mechanisms(const std::string& airlock, const std::string& bench, int rounds) {
  constexpr int kBlocks = 5;
  constexpr int kStartsPerBlock = 6;
  const auto all = ways(airlock);
  const Daemon daemon(airlock, all);
  std::map<std::string, Costs> costs;
  for (int block = 0; block < kBlocks; ++block) {
    for (const auto& [name, run] : all) {
      // The mechanism itself is measured, not the interposer that comes before it.
      std::istringstream lines(output_of(run + bench +
                                         (name == "preload" ? " --routed-spawns " : " --spawns ") +
                                         std::to_string(rounds / kBlocks)));
      for (double us = 0; lines >> us;) costs[name].spawn.add(us);
      for (int i = 0; i < kStartsPerBlock; ++i) {
        costs[name].start_ms.add(timed_ms(run + "/bin/true"));
        costs[name].start_in_daemon_ms.add(
            timed_ms((name.empty() ? "" : daemon.run(name)) + "/bin/true"));
      }
    }
  }
  std::cout << "\n### Mechanisms that enforce routing\n\n";
  print_heading({"mechanism", "spawn of /bin/true p10 (us)", "median", "added",
                 "agent starts later, daemon running (ms)", "with a daemon of its own (ms)"});
  const Costs& bare = costs[""];
  for (const auto& [name, cost] : costs) {
    print_row({name.empty() ? "bare" : name, number(cost.spawn.percentile(0.1)),
               number(cost.spawn.median()), number(cost.spawn.median() - bare.spawn.median()),
               number(cost.start_in_daemon_ms.median() - bare.start_in_daemon_ms.median(), 2),
               number(cost.start_ms.median() - bare.start_ms.median(), 2)});
  }
  std::cout << "\nBudget: an agent starts at most 10 ms later, the shim farm being built once.\n";
}

}  // namespace bench
