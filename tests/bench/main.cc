// airlock-bench: what routing and the HTTP API cost, beside direct spawns in the same run. Prints
// Markdown.
//
//   airlock-bench [ROUNDS]           all tables; starts itself as the agent of `airlock run`
//   airlock-bench --services         those of services only
//   airlock-bench --api              those of the HTTP API only
//
// Timings are printed, never judged: budgets stand beside them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/bench/api.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"
#include "tests/bench/mechanisms.h"
#include "tests/bench/services.h"
#include "tests/bench/spawns.h"
#include "wire/channel.h"
#include "wire/requester.h"

namespace {

using bench::ask;
using bench::context_pss_kib;
using bench::memory_kib;
using bench::now_us;
using bench::number;
using bench::run_command;
using bench::Samples;
using nlohmann::json;

std::string folder() {
  auto own = base::read_link("/proc/self/exe");
  return own ? own->substr(0, own->rfind('/')) : ".";
}

double timed(const std::vector<std::string>& argv) {
  const double start = now_us();
  if (run_command(argv) != 0) {
    std::cerr << argv.front() << " failed\n";
    std::exit(1);
  }
  return now_us() - start;
}

void measure_whole_runs(const std::string& airlock) {
  std::cout << "\n### Whole agent runs and pipes\n\n";
  bench::print_heading({"what", "bare median", "routed median", "difference", "budget"});
  Samples bare;
  Samples routed;
  for (int i = 0; i < 30; ++i) {
    bare.add(timed({"/bin/true"}) / 1000);
    routed.add(timed({airlock, "run", "--", "/bin/true"}) / 1000);
  }
  bench::print_row({"`airlock run -- true`: daemon, two contexts, end (ms)",
                    number(bare.median(), 2), number(routed.median(), 2),
                    number(routed.median() - bare.median(), 2) + " ms", "agent start ≤ 10 ms"});
  const std::string pipe = "cat /dev/zero | head -c 2G >/dev/null";
  Samples bare_pipe;
  Samples routed_pipe;
  for (int i = 0; i < 5; ++i) {
    bare_pipe.add(2.147 / (timed({"/bin/bash", "-c", pipe}) / 1e6));
    routed_pipe.add(2.147 / (timed({airlock, "run", "--", "/bin/bash", "-c", pipe}) / 1e6));
  }
  bench::print_row({"`cat /dev/zero \\| head -c 2G` (GB/s)", number(bare_pipe.median(), 2),
                    number(routed_pipe.median(), 2),
                    number(routed_pipe.median() / bare_pipe.median(), 2) + "×", "≥ 0.95×"});
}

/// The daemon's side, in a daemon of its own: contexts and memory.
void measure_daemon(const std::string& airlock) {
  char runtime[] = "/tmp/airlock-bench-XXXXXX";
  if (::mkdtemp(runtime) == nullptr) std::exit(1);
  ::setenv("AIRLOCK_RUNTIME_DIR", runtime, 1);
  if (run_command({airlock, "up"}) != 0) std::exit(1);
  auto socket = wire::connect_to(std::string(runtime) + "/control.sock");
  if (!socket) std::exit(1);
  Samples create;
  Samples destroy;
  for (int i = 0; i < 100; ++i) {
    const double start = now_us();
    ask(socket->borrow(), {{"verb", "ctx.create"}, {"spec", {{"name", "bench"}}}});
    const double middle = now_us();
    ask(socket->borrow(), {{"verb", "ctx.remove"}, {"context", "bench"}});
    create.add((middle - start) / 1000);
    destroy.add((now_us() - middle) / 1000);
  }
  const json info = ask(socket->borrow(), {{"verb", "info"}});
  const json user = ask(socket->borrow(), {{"verb", "ctx.inspect"}, {"context", "user"}});
  const int daemon = info["pid"];
  std::cout << "\n### Contexts and memory\n\n";
  bench::print_heading({"what", "p10", "median", "p99", "budget"});
  bench::print_row({"create a context (ms)", number(create.percentile(0.1), 2),
                    number(create.median(), 2), number(create.percentile(0.99), 2), "≤ 5"});
  bench::print_row({"destroy it (ms)", number(destroy.percentile(0.1), 2),
                    number(destroy.median(), 2), number(destroy.percentile(0.99), 2), ""});
  bench::print_row({"airlock-routerd RSS / PSS (MB)", "",
                    number(static_cast<double>(memory_kib(daemon, "Rss")) / 1024, 2) + " / " +
                        number(static_cast<double>(memory_kib(daemon, "Pss")) / 1024, 2),
                    "", "RSS ≤ 8"});
  bench::print_row(
      {"init + spawner of one context, PSS (MB)", "",
       number(static_cast<double>(context_pss_kib(user["context"]["initPid"])) / 1024, 2), "",
       "≤ 0.3"});
  socket->reset();
  run_command({airlock, "down"});
  run_command({"/bin/rm", "-rf", runtime});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--serve") bench::serve_forever();
  // Descriptors of whoever started this would be passed along with every spawn.
  ::close_range(3, ~0u, 0);
  const std::string bin = folder();
  if (argc == 2 && std::string(argv[1]) == "--services") return bench::measure_services(bin), 0;
  if (argc == 2 && std::string(argv[1]) == "--api") return bench::measure_api(bin) ? 0 : 1;
  const int rounds = argc > 1 ? std::atoi(argv[argc - 1]) : 1000;
  if (argc > 2 && std::string(argv[1]) == "--as-agent") {
    std::cout << "### Latency of one spawn and wait (us), " << rounds << " interleaved rounds\n\n";
    bench::measure_latency(rounds, bin + "/airlock-bench-noop");
    std::cout
        << "\nBudget for /bin/true: at most 300 us more and 1.5×.\n\n### Parallel clients\n\n";
    bench::measure_clients(1.0);
    std::cout << "\nBudget at 16 clients: at least 0.65.\n";
    return 0;
  }
  if (argc > 2 && std::string(argv[1]) == "--spawns") {
    return bench::print_spawns(rounds, bench::spawn_direct);
  }
  if (argc > 2 && std::string(argv[1]) == "--routed-spawns") {
    return bench::print_spawns(rounds, bench::spawn_routed);
  }
  const std::string airlock = bin + "/airlock";
  // By the interposer: only there the agent can spawn directly as well, for comparison.
  if (run_command({airlock, "run", "--enforce", "preload", "--", bin + "/airlock-bench",
                   "--as-agent", std::to_string(rounds)}) != 0) {
    return 1;
  }
  bench::measure_mechanisms(airlock, bin + "/airlock-bench", rounds);
  measure_whole_runs(airlock);
  measure_daemon(airlock);
  bench::measure_services(bin);
  return bench::measure_api(bin) ? 0 : 1;
}
