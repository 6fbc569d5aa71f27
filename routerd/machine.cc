#include "routerd/machine.h"

#include <glob.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "contexts/runtime_dir.h"

namespace routerd {

using json = nlohmann::json;

namespace {

struct Fact {
  std::string value;
  std::string remark;
};

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

bool matches(const char* pattern) {
  glob_t found{};
  const bool has_any = ::glob(pattern, 0, nullptr, &found) == 0;
  ::globfree(&found);
  return has_any;
}

Fact kernel() {
  utsname name{};
  ::uname(&name);
  return {std::string(name.release) + " " + name.machine, ""};
}

Fact container() {
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return {"Kubernetes", ""};
  if (exists("/run/.containerenv")) return {"podman", ""};
  if (exists("/.dockerenv")) return {"docker", ""};
  return {"none seen", ""};
}

Fact landlock() {
  constexpr unsigned kVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersion);
  if (abi >= 6) return {"version " + std::to_string(abi), ""};
  const char* remark =
      "abstract sockets are not scoped, there is no tier landlock, and uids is weaker: needs Linux "
      "6.12, landlock in the kernel's lsm= list, and a seccomp profile that allows it";
  return {abi > 0 ? "version " + std::to_string(abi) : "none", remark};
}

Fact seccomp() {
  const auto status = base::read_file("/proc/self/status");
  const bool is_filtered = status && status->find("\nSeccomp:\t2") != std::string::npos;
  return {is_filtered ? "a filter" : "no filter", ""};
}

/// Container engines cover parts of /proc; then the kernel refuses a new one in a user namespace.
Fact proc() {
  const auto mounts = base::read_file("/proc/self/mountinfo");
  const bool is_masked = mounts && mounts->find(" /proc/") != std::string::npos;
  if (!is_masked) return {"unmasked", ""};
  return {"masked", "no tier userns"};
}

Fact cgroups() {
  for (const char* folder : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
    if (!exists((std::string(folder) + "/cgroup.procs").c_str())) continue;
    if (::access(folder, W_OK) == 0) return {"writable", ""};
    return {"read-only", "no limits per context, only those of the whole container"};
  }
  return {"none", "no limits per context"};
}

Fact ipv6() {
  return exists("/proc/net/if_inet6") ? Fact{"on", ""}
                                      : Fact{"off", "ports are held for IPv4 only"};
}

Fact c_library() {
  const bool has_glibc = matches("/lib*/ld-linux-*.so.*") || matches("/lib/*-linux-gnu/ld-linux-*");
  if (!matches("/lib/ld-musl-*.so.1")) return {has_glibc ? "glibc" : "unknown", ""};
  return {
      has_glibc ? "glibc and musl" : "musl",
      "the interposer is made for glibc: an agent linked to musl (Alpine's node, python) is "
      "routed as a static one, by binfmt, farm or ptrace; where none of them works it is refused"};
}

Fact files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string value = std::to_string(limit.rlim_max);
  return {value,
          limit.rlim_max >= 4096 ? "" : "few for a daemon: docker run --ulimit nofile=65536"};
}

Fact runtime_folder() {
  const std::string folder = contexts::RuntimeDir::default_root();
  const std::string parent = folder.substr(0, folder.rfind('/') + 1);
  for (const auto& path : {folder, parent}) {
    if (exists(path.c_str())) {
      if (::access(path.c_str(), W_OK | X_OK) == 0) return {folder, ""};
      return {folder, path +
                          " cannot be written: set AIRLOCK_RUNTIME_DIR, or mount a tmpfs there "
                          "(docker run --tmpfs /run:exec)"};
    }
  }
  return {folder, "there is no " + parent};
}

}  // namespace

json machine_facts() {
  const struct {
    const char* name;
    Fact fact;
  } facts[] = {{"kernel", kernel()},     {"container", container()},
               {"Landlock", landlock()}, {"seccomp", seccomp()},
               {"/proc", proc()},        {"cgroups", cgroups()},
               {"IPv6", ipv6()},         {"C library", c_library()},
               {"open files", files()},  {"runtime folder", runtime_folder()}};
  json list = json::array();
  for (const auto& [name, fact] : facts) {
    list.push_back({{"name", name}, {"value", fact.value}, {"remark", fact.remark}});
  }
  return list;
}

}  // namespace routerd
