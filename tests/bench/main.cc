// airlock-bench: what routing costs, beside direct spawns in the same run. Prints Markdown.
//
//   airlock-bench [ROUNDS]           all tables; starts itself as the agent of `airlock run`
//
// Timings are printed, never judged: budgets stand beside them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/bench/measure.h"
#include "tests/bench/spawns.h"
#include "wire/channel.h"
#include "wire/requester.h"

namespace {

using bench::now_us;
using bench::number;
using bench::Samples;
using nlohmann::json;

std::string folder() {
  auto own = base::read_link("/proc/self/exe");
  return own ? own->substr(0, own->rfind('/')) : ".";
}

int run_command(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
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

json ask(int socket, const json& request) {
  if (!wire::send_message(socket, wire::Control{request.dump()})) std::exit(1);
  wire::Receiver receiver;
  auto frame = receiver.receive(socket);
  if (!frame || !*frame) std::exit(1);
  auto reply = wire::decode<wire::ControlReply>((*frame)->payload);
  const json answer = json::parse(reply ? reply->json : "{}");
  if (!answer.value("ok", false)) {
    std::cerr << answer.dump() << "\n";
    std::exit(1);
  }
  return answer;
}

long memory_kib(int pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::atol(line.c_str() + field.size() + 1);
  }
  return 0;
}

/// PSS of a context's init and of the spawner it forked, KiB.
long context_pss_kib(int init) {
  const std::string id = std::to_string(init);
  auto children = base::read_file("/proc/" + id + "/task/" + id + "/children");
  const int spawner = children ? std::atoi(children->c_str()) : 0;
  return memory_kib(init, "Pss") + memory_kib(spawner, "Pss");
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
  // Descriptors of whoever started this would be passed along with every spawn.
  ::close_range(3, ~0u, 0);
  const std::string bin = folder();
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
  const std::string airlock = bin + "/airlock";
  if (run_command({airlock, "run", "--", bin + "/airlock-bench", "--as-agent",
                   std::to_string(rounds)}) != 0) {
    return 1;
  }
  measure_whole_runs(airlock);
  measure_daemon(airlock);
  return 0;
}
