#include "routerd/ancestry.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "routerd/program.h"

namespace routerd {
namespace {

constexpr int kMaxAncestors = 64;
constexpr std::size_t kMaxEnviron = 8 << 20;  // more than an exec takes (ARG_MAX with 8 MiB stacks)

std::string proc_file(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string variable_of(pid_t pid, std::string_view name) {
  const auto environ = base::read_file(proc_file(pid, "environ"), kMaxEnviron);
  if (!environ) return {};
  const std::string start = std::string(name) + "=";
  for (std::size_t at = 0; at < environ->size();) {
    const std::size_t end = std::min(environ->find('\0', at), environ->size());
    const std::string_view entry = std::string_view(*environ).substr(at, end - at);
    if (entry.starts_with(start)) return std::string(entry.substr(start.size()));
    at = end + 1;
  }
  return {};
}

}  // namespace

pid_t parent_of(pid_t pid) {
  const auto stat = base::read_file(proc_file(pid, "stat"));
  const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end == std::string::npos ? 0 : std::atoi(stat->c_str() + name_end + 4);
}

FileId executable_of(pid_t pid) { return file_id(proc_file(pid, "exe")); }

std::string inherited_variable(pid_t pid, pid_t top, std::string_view name) {
  for (int i = 0; i < kMaxAncestors; ++i) {
    pid = parent_of(pid);
    if (pid <= 1 || pid == top) break;
    if (auto value = variable_of(pid, name); !value.empty()) return value;
  }
  return {};
}

bool is_started_by(const AgentIdentity& agent, pid_t pid, pid_t init) {
  const pid_t parent = parent_of(pid);
  const FileId executable = executable_of(parent);
  if (!executable.is_known()) return false;
  const auto is_it = [&executable](const FileId& file) { return executable.is_same_file(file); };
  if (is_it(executable_of(init)) || is_it(agent.executable_id)) return true;
  for (const auto* files : {&agent.runtimes, &agent.launchers}) {
    if (std::any_of(files->begin(), files->end(), is_it)) return true;
  }
  const auto path = base::read_link(proc_file(parent, "exe"));
  return path && std::any_of(agent.copies.begin(), agent.copies.end(),
                             [&path](const auto& folder) { return is_below(*path, folder); });
}

}  // namespace routerd
