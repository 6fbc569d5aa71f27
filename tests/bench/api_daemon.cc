#include "tests/bench/api_daemon.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"

namespace bench {

using nlohmann::json;

namespace {

constexpr std::uint16_t kPort = 8080;
constexpr const char* kToken = "a-token-of-the-benchmark";

void write(const std::string& path, const json& content) {
  require(base::write_file(path, content.dump(), 0600).has_value(), "cannot write " + path);
}

/// The API's pid: it is the only one in this network namespace. 0: none.
int find_api() {
  const auto own = base::read_link("/proc/self/ns/net");
  DIR* proc = ::opendir("/proc");
  int found = 0;
  while (const dirent* entry = ::readdir(proc)) {
    const std::string folder = std::string("/proc/") + entry->d_name;
    const auto name = base::read_file(folder + "/comm");
    if (!name || *name != "airlock-api\n") continue;
    const auto net = base::read_link(folder + "/ns/net");
    if (net && own && *net == *own) found = std::atoi(entry->d_name);
  }
  ::closedir(proc);
  return found;
}

}  // namespace

std::string megabytes(double kib) { return number(kib / 1024, 1); }

ApiDaemon::ApiDaemon(const std::string& folder) : airlock_(folder + "/airlock") {
  require(::mkdtemp(folder_) != nullptr, "cannot make a folder");
  ::chmod(folder_, 0755);
  const std::string here = folder_;
  ::setenv("AIRLOCK_RUNTIME_DIR", (here + "/run").c_str(), 1);
  ::mkdir((here + "/etc").c_str(), 0700);
  const auto hash = base::hex(base::sha256(kToken));
  const json token = {{"name", "bench"}, {"sha256", hash}, {"scope", "admin"}};
  write(here + "/etc/tokens.json", {{"tokens", {token}}});
  const json api = {{"tokens_file", here + "/etc/tokens.json"}, {"requests_per_second", 1000000}};
  write(here + "/airlock.yaml", {{"contexts", {{"user", {{"cwd", "/tmp"}}}}}, {"api", api}});
  require(run_command({airlock_, "up", "--config", here + "/airlock.yaml"}) == 0,
          "airlock up failed");
  client().request("GET", "/health");  // waits in the backlog
  pid_ = find_api();
  require(pid_ != 0, "there is no airlock-api");
}

ApiDaemon::~ApiDaemon() {
  run_command({airlock_, "down"});
  run_command({"/bin/rm", "-rf", folder_});
}

HttpClient ApiDaemon::client() { return {kPort, kToken}; }

AttachedClient ApiDaemon::attach(const std::string& path) { return {kPort, kToken, path}; }

double ApiDaemon::rss_kib() const { return static_cast<double>(memory_kib(pid_, "Rss")); }

double ApiDaemon::cpu_seconds() const {
  const auto stat = base::read_file("/proc/" + std::to_string(pid_) + "/stat");
  if (!stat) return 0;
  unsigned long user = 0;
  unsigned long system = 0;
  std::sscanf(stat->c_str() + stat->rfind(')'),
              ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double ApiDaemon::files_kib() const {
  constexpr int kMostFds = 64;
  constexpr double kKibPerBlock = 0.5;
  double kib = 0;
  for (int fd = 3; fd < kMostFds; ++fd) {
    const std::string path = "/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(fd);
    const auto target = base::read_link(path);
    struct stat file {};
    if (!target || !target->starts_with("/memfd:") || ::stat(path.c_str(), &file) != 0) continue;
    kib += static_cast<double>(file.st_blocks) * kKibPerBlock;
  }
  return kib;
}

}  // namespace bench
