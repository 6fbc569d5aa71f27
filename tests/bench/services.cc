#include "tests/bench/services.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"

namespace bench {
namespace {

using nlohmann::json;

constexpr std::uint16_t kPort = 8080;
constexpr int kStarts = 20;
constexpr int kClients = 8;
constexpr int kRequestsPerSecond = 1000;
constexpr int kSeconds = 6;
constexpr int kKills = 20;

/// What happened to the requests of all clients.
struct Tally {
  std::mutex lock;
  Samples latencies;
  int served = 0, refused = 0, reset = 0;
};

/// One request: 0, or the errno it met.
int request_once() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.borrow(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return errno;
  }
  char byte = 0;
  const ssize_t got = ::recv(socket.borrow(), &byte, 1, 0);
  return got == 1 ? 0 : got == 0 ? ECONNRESET : errno;
}

/// An open loop: requests start when they are due, so that a gap shows in all that fall into it.
void run_client(int index, double start, Tally& tally) {
  constexpr double kStep = 1e6 * kClients / kRequestsPerSecond;
  for (int i = 0; i < kSeconds * kRequestsPerSecond / kClients; ++i) {
    const double due = start + kStep * i + kStep * index / kClients;
    if (const double early = due - now_us(); early > 0) ::usleep(static_cast<unsigned>(early));
    const int error = request_once();
    const double latency = now_us() - due;
    const std::lock_guard guard(tally.lock);
    tally.latencies.add(latency);
    tally.served += error == 0;
    tally.refused += error == ECONNREFUSED;
    tally.reset += error != 0 && error != ECONNREFUSED;
  }
}

json service_of(int socket) { return ask(socket, {{"verb", "services"}})["services"][0]; }

void await(int socket, const std::function<bool(const json&)>& is_so) {
  while (!is_so(service_of(socket))) ::usleep(200);
}

bool is_ready(const json& service) { return service["state"] == "ready"; }

void measure_kills(int socket) {
  Tally tally;
  Samples restart;
  std::vector<std::thread> clients;
  const double start = now_us() + 100'000;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(run_client, i, start, std::ref(tally));
  }
  for (int kill = 1; kill <= kKills; ++kill) {
    ::usleep(kSeconds * 900'000 / kKills);
    const std::uint64_t before = service_of(socket)["restarts"];
    const double killed = now_us();
    ask(socket, {{"verb", "signal"}, {"context", "control"}, {"signal", SIGKILL}});
    await(socket, [before](const json& service) {
      return is_ready(service) && service["restarts"] > before;
    });
    restart.add((now_us() - killed) / 1000);
  }
  for (auto& client : clients) client.join();
  print_row({"SIGKILL to ready again (ms)", number(restart.median(), 2),
             number(restart.percentile(0.99), 2), ""});
  print_row({"request at 1000/s, " + std::to_string(kKills) + " kills (ms)",
             number(tally.latencies.median() / 1000, 2),
             number(tally.latencies.percentile(0.99) / 1000, 2), "p99 ≤ restart time"});
  print_row({"served / refused / lost with the killed process", std::to_string(tally.served),
             std::to_string(tally.refused) + " / " + std::to_string(tally.reset), "0 refused"});
}

/// `airlock up` with one service, to ready. The daemon is left running.
double start_once(const std::string& airlock, const std::string& config,
                  const std::string& runtime) {
  const double start = now_us();
  if (run_command({airlock, "up", "--config", config}) != 0) std::exit(1);
  auto socket = wire::connect_to(runtime + "/control.sock");
  if (!socket) std::exit(1);
  await(socket->borrow(), is_ready);
  return (now_us() - start) / 1000;
}

void measure_memory(int socket) {
  const int daemon = ask(socket, {{"verb", "info"}})["pid"];
  double contexts = 0;
  const json list = ask(socket, {{"verb", "ctx.list"}})["contexts"];
  for (const auto& context : list) {
    contexts += static_cast<double>(context_pss_kib(context["initPid"])) / 1024;
  }
  const double rss = static_cast<double>(memory_kib(daemon, "Rss")) / 1024;
  const double pss = static_cast<double>(memory_kib(daemon, "Pss")) / 1024;
  print_row({"routerd RSS / PSS (MB)", number(rss, 2), number(pss, 2), "RSS ≤ 8"});
  print_row({"routerd + " + std::to_string(list.size()) + " contexts, PSS (MB)",
             number(pss + contexts, 2), "", ""});
}

}  // namespace

void serve_forever() {
  constexpr int kListener = 3;
  for (;;) {
    const base::UniqueFd connection(::accept4(kListener, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) (void)::send(connection.borrow(), "x", 1, MSG_NOSIGNAL);
  }
}

void measure_services(const std::string& folder) {
  std::cout << "\n### Services\n\n";
  if (!enter_own_network()) {
    std::cout << "NOT RUN: needs CAP_SYS_ADMIN for a network namespace\n";
    return;
  }
  char runtime[] = "/tmp/airlock-bench-XXXXXX";
  if (::mkdtemp(runtime) == nullptr) std::exit(1);
  ::setenv("AIRLOCK_RUNTIME_DIR", runtime, 1);
  const std::string config = std::string(runtime) + "/airlock.yaml";
  std::ofstream(config) << "services: {web: {command: [" << folder << "/airlock-bench, --serve], "
                        << "ports: [" << kPort << "], sockets: listen_fds, "
                        << "restart_delay: 1ms, max_restart_delay: 1ms}}\n";
  const std::string airlock = folder + "/airlock";
  Samples start;
  for (int i = 0; i < kStarts; ++i) {
    start.add(start_once(airlock, config, runtime));
    if (i + 1 < kStarts) run_command({airlock, "down"});
  }
  print_heading({"what", "median", "p99", "budget"});
  print_row({"`airlock up`: 3 contexts, a service ready (ms)", number(start.median(), 2),
             number(start.percentile(0.99), 2), "≤ 50"});
  auto socket = wire::connect_to(std::string(runtime) + "/control.sock");
  if (!socket) std::exit(1);
  measure_memory(socket->borrow());
  measure_kills(socket->borrow());
  socket->reset();
  run_command({airlock, "down"});
  run_command({"/bin/rm", "-rf", runtime});
}

}  // namespace bench
