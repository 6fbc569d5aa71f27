#include "contexts/shell/processes.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/file.h"

namespace contexts::shell {
namespace {

// "pid (name) state ppid …": the name may hold anything, so fields count from the last ')'.
bool parse(const std::string& stat, Process& process) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  process.pid = std::atoi(stat.c_str());
  const char* at = stat.c_str() + name_end + 1;
  constexpr int kState = 1;
  constexpr int kParent = 2;
  constexpr int kStartTime = 20;  // field 22 of all
  for (int field = 1; field <= kStartTime; ++field) {
    while (*at == ' ') ++at;
    if (field == kState) process.is_zombie = *at == 'Z';
    if (field == kParent) process.parent = std::atoi(at);
    if (field == kStartTime) process.start_ticks = std::strtoull(at, nullptr, 10);
    while (*at != ' ' && *at != '\0') ++at;
  }
  return process.pid > 0;
}

void add_process(std::vector<Process>& all, const std::string& pid) {
  const auto stat = base::read_file("/proc/" + pid + "/stat");
  Process process;
  if (stat && parse(*stat, process)) all.push_back(process);
}

const Process* find(const std::vector<Process>& all, int pid) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [pid](const Process& process) { return process.pid == pid; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Process> list_processes() {
  std::vector<Process> all;
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return all;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    add_process(all, entry->d_name);
  }
  ::closedir(folder);
  return all;
}

std::vector<int> children_of(int pid) {
  std::vector<Process> all;
  const std::string own = std::to_string(pid);
  if (const auto list = base::read_file("/proc/" + own + "/task/" + own + "/children")) {
    for (std::size_t at = 0; at < list->size();) {
      const auto end = std::min(list->find(' ', at), list->size());
      add_process(all, list->substr(at, end - at));
      at = end + 1;
    }
  } else {
    all = list_processes();  // a kernel without CONFIG_PROC_CHILDREN
  }
  std::vector<int> children;
  for (const auto& process : all) {
    if (process.parent == pid && !process.is_zombie) children.push_back(process.pid);
  }
  return children;
}

std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1'000'000'000;
}

std::vector<int> descendants(const std::vector<Process>& all, int pid) {
  std::vector<int> below;
  for (const auto& process : all) {
    const Process* at = &process;
    for (std::size_t steps = 0; steps < all.size() && at != nullptr && at->parent != pid; ++steps) {
      at = find(all, at->parent);
    }
    if (at != nullptr && at->parent == pid && !process.is_zombie) below.push_back(process.pid);
  }
  return below;
}

std::vector<int> started_since(const std::vector<Process>& all, int host, int shell,
                               const std::vector<int>& spared, std::uint64_t ticks) {
  const auto is_older = [&](const Process& process) {
    return process.start_ticks < ticks ||
           std::find(spared.begin(), spared.end(), process.pid) != spared.end();
  };
  std::vector<int> started;
  for (const auto& process : all) {
    if (process.pid == shell || process.pid == host) continue;
    const Process* at = &process;
    // A table read while pids are reused may hold a circle.
    for (std::size_t steps = 0; steps < all.size() && at != nullptr && !is_older(*at) &&
                                at->parent != shell && at->parent != host;
         ++steps) {
      at = find(all, at->parent);
    }
    if (at != nullptr && !is_older(*at)) started.push_back(process.pid);
  }
  return started;
}

}  // namespace contexts::shell
