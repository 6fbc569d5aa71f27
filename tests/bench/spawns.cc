#include "tests/bench/spawns.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "tests/bench/measure.h"

extern char** environ;

namespace bench {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& argv) {
  std::vector<char*> result;
  for (const auto& word : argv) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

void await(pid_t pid, const std::string& program) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status == 0) return;
  std::cerr << program << " ended with wait status " << status << "\n";
  std::exit(1);
}

}  // namespace

namespace {

using PosixSpawn = decltype(&::posix_spawn);

void spawn_with(PosixSpawn spawn, const std::vector<std::string>& argv) {
  const auto words = pointers(argv);
  pid_t pid = -1;
  if (spawn(&pid, words[0], nullptr, nullptr, words.data(), environ) != 0) std::exit(1);
  await(pid, argv.front());
}

/// libc's own function, found past the preloaded one.
PosixSpawn libc_posix_spawn() {
  void* libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<PosixSpawn>(::dlsym(libc, "posix_spawn"));
}

}  // namespace

void spawn_direct(const std::vector<std::string>& argv) {
  static const PosixSpawn direct = libc_posix_spawn();
  spawn_with(direct, argv);
}

void spawn_routed(const std::vector<std::string>& argv) { spawn_with(&::posix_spawn, argv); }

int print_spawns(int rounds, void (*spawn)(const std::vector<std::string>&)) {
  for (int round = 0; round < rounds; ++round) {
    const double start = now_us();
    spawn({"/bin/true"});
    std::cout << now_us() - start << "\n";
  }
  return 0;
}

void measure_latency(int rounds, const std::string& noop) {
  print_heading({"program", "direct p10", "median", "p99", "routed p10", "median", "p99",
                 "added (median)", "ratio"});
  const std::vector<std::pair<std::string, std::vector<std::string>>> programs = {
      {"/bin/true", {"/bin/true"}},
      {"static no-op", {noop}},
      {"sh -c true", {"/bin/sh", "-c", "true"}}};
  for (const auto& [name, argv] : programs) {
    Samples direct;
    Samples routed;
    for (int round = 0; round < rounds; ++round) {
      const double start = now_us();
      spawn_direct(argv);
      const double middle = now_us();
      spawn_routed(argv);
      const double end = now_us();
      direct.add(middle - start);
      routed.add(end - middle);
    }
    print_row({name, number(direct.percentile(0.1)), number(direct.median()),
               number(direct.percentile(0.99)), number(routed.percentile(0.1)),
               number(routed.median()), number(routed.percentile(0.99)),
               number(routed.median() - direct.median()) + " us",
               number(routed.median() / direct.median(), 2)});
  }
}

double spawns_per_second(int clients, double seconds,
                         void (*spawn)(const std::vector<std::string>&)) {
  auto* counts = static_cast<long*>(::mmap(nullptr, 64 * sizeof(long), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const double end = now_us() + seconds * 1e6;
  std::vector<pid_t> children;
  for (int i = 0; i < clients; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      while (now_us() < end) spawn({"/bin/true"}), ++counts[i];
      _exit(0);
    }
    children.push_back(pid);
  }
  double total = 0;
  for (int i = 0; i < clients; ++i) {
    ::waitpid(children[static_cast<std::size_t>(i)], nullptr, 0);
    total += static_cast<double>(counts[i]);
  }
  ::munmap(counts, 64 * sizeof(long));
  return total / seconds;
}

void measure_clients(double seconds) {
  print_heading({"clients", "direct spawns/s", "routed spawns/s", "routed/direct"});
  for (const int clients : {1, 4, 16, 64}) {
    Samples direct;
    Samples routed;
    for (int round = 0; round < 3; ++round) {
      direct.add(spawns_per_second(clients, seconds, spawn_direct));
      routed.add(spawns_per_second(clients, seconds, spawn_routed));
    }
    print_row({std::to_string(clients), number(direct.median()), number(routed.median()),
               number(routed.median() / direct.median(), 2)});
  }
}

}  // namespace bench
