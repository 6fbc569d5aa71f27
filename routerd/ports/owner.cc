#include "routerd/ports/owner.h"

#include <dirent.h>
#include <stdio.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <sstream>

#include "base/file.h"

namespace routerd::ports {
namespace {

constexpr std::size_t kLargestTable = 64u << 20;
constexpr std::size_t kMostNamed = 3;

/// Adds the inodes of the sockets of one /proc/net table (proc(5)) that are bound to `number`.
void add_inodes(const char* table, unsigned number, std::set<std::string>& inodes) {
  const auto text = base::read_file(table, kLargestTable);
  if (!text) return;
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    // "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode"
    std::istringstream fields(line);
    std::string field[10];
    for (auto& each : field) fields >> each;
    const auto colon = field[1].rfind(':');
    const bool is_connected = field[2].find_first_not_of("0:") != std::string::npos;
    if (colon == std::string::npos || is_connected) continue;
    if (std::strtoul(field[1].c_str() + colon + 1, nullptr, 16) == number) inodes.insert(field[9]);
  }
}

void for_each_entry(const std::string& folder, const std::function<void(const char*)>& action) {
  DIR* opened = ::opendir(folder.c_str());
  if (opened == nullptr) return;
  while (const dirent* entry = ::readdir(opened)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') action(entry->d_name);
  }
  ::closedir(opened);
}

bool has_socket(const std::string& process, const std::set<std::string>& inodes) {
  bool found = false;
  for_each_entry(process + "/fd", [&](const char* number) {
    const auto link = base::read_link(process + "/fd/" + number);
    if (!link || !link->starts_with("socket:[")) return;
    found |= inodes.contains(link->substr(8, link->size() - 9));
  });
  return found;
}

}  // namespace

std::string who_has(const PortKey& key) {
  const std::string protocol = name_of(key.protocol);
  std::set<std::string> inodes;
  add_inodes(("/proc/net/" + protocol).c_str(), key.number, inodes);
  add_inodes(("/proc/net/" + protocol + "6").c_str(), key.number, inodes);
  if (inodes.empty()) return "connections that ended a moment ago, for at most 60 s more";
  std::size_t count = 0;
  std::string names;
  for_each_entry("/proc", [&](const char* pid) {
    const std::string process = std::string("/proc/") + pid;
    if (count >= kMostNamed || !has_socket(process, inodes)) return;
    const auto program = base::read_link(process + "/exe");
    names += (count++ == 0 ? "pid " : ", pid ") + std::string(pid) + " (" +
             (program ? *program : "unknown program") + ")";
  });
  return names.empty() ? "a process that cannot be looked into from here" : names;
}

}  // namespace routerd::ports
