#include "routerd/process_table.h"

#include <dirent.h>
#include <errno.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/file.h"
#include "routerd/ancestry.h"

namespace routerd {
namespace {

/// Calls `take` with the name of each entry of `folder` that is a number. errno, or 0.
template <class Take>
int for_each_number(const std::string& folder, Take take) {
  DIR* opened = ::opendir(folder.c_str());
  if (opened == nullptr) return errno;
  while (const dirent* entry = ::readdir(opened)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') take(entry->d_name);
  }
  ::closedir(opened);
  return 0;
}

}  // namespace

ProcessTable ProcessTable::read() {
  std::map<pid_t, pid_t> parents;
  for_each_number("/proc", [&parents](const char* name) {
    const pid_t pid = std::atoi(name);
    parents[pid] = routerd::parent_of(pid);
  });
  return ProcessTable(std::move(parents));
}

pid_t ProcessTable::parent_of(pid_t pid) const {
  const auto found = parents_.find(pid);
  return found == parents_.end() ? 0 : found->second;
}

pid_t ProcessTable::nearest(pid_t pid, const std::set<pid_t>& pids) const {
  // What was read bit by bit may have a circle.
  for (std::size_t depth = 0; pid > 1 && depth <= parents_.size(); ++depth) {
    if (pids.contains(pid)) return pid;
    pid = parent_of(pid);
  }
  return 0;
}

HeldSockets sockets_held_by(pid_t pid, const std::set<ino_t>& inodes) {
  constexpr std::string_view kPrefix = "socket:[";
  HeldSockets held;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  held.error = for_each_number(folder, [&](const char* number) {
    const auto link = base::read_link(folder + "/" + number);
    if (!link || !link->starts_with(kPrefix)) return;
    ino_t inode = 0;
    std::from_chars(link->data() + kPrefix.size(), link->data() + link->size(), inode);
    if (inodes.contains(inode)) held.inodes.insert(inode);
  });
  return held;
}

pid_t inner_pid(pid_t pid) {
  constexpr std::string_view kKey = "\nNSpid:";  // one per namespace, the innermost last
  const auto status = base::read_file("/proc/" + std::to_string(pid) + "/status");
  const auto at = status ? status->find(kKey) : std::string::npos;
  if (at == std::string::npos) return pid;
  const auto end = status->find('\n', at + kKey.size());
  const auto last = status->find_last_of(" \t", end);
  const int inner = std::atoi(status->c_str() + last + 1);
  return inner > 0 ? inner : pid;
}

}  // namespace routerd
