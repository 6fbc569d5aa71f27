#include "routerd/ports/owner.h"

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/file.h"
#include "routerd/process_table.h"

namespace routerd::ports {
namespace {

constexpr std::size_t kLargestTable = 64u << 20;
constexpr std::size_t kMostNamed = 3;

/// Adds the inodes of the sockets of one /proc/net table (proc(5)) that are bound to `number`.
void add_inodes(const char* table, unsigned number, std::set<ino_t>& inodes) {
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
    if (std::strtoul(field[1].c_str() + colon + 1, nullptr, 16) == number) {
      inodes.insert(std::strtoull(field[9].c_str(), nullptr, 10));
    }
  }
}

}  // namespace

std::string who_has(const PortKey& key) {
  const std::string protocol = name_of(key.protocol);
  std::set<ino_t> inodes;
  add_inodes(("/proc/net/" + protocol).c_str(), key.number, inodes);
  add_inodes(("/proc/net/" + protocol + "6").c_str(), key.number, inodes);
  if (inodes.empty()) return "connections that ended a moment ago, for at most 60 s more";
  std::size_t count = 0;
  std::string names;
  const auto table = ProcessTable::read();
  for (const auto& [pid, parent] : table.parents()) {
    if (sockets_held_by(pid, inodes).inodes.empty()) continue;
    const auto program = base::read_link("/proc/" + std::to_string(pid) + "/exe");
    names += (count++ == 0 ? "pid " : ", pid ") + std::to_string(pid) + " (" +
             (program ? *program : "unknown program") + ")";
    if (count == kMostNamed) break;
  }
  return names.empty() ? "a process that cannot be looked into from here" : names;
}

}  // namespace routerd::ports
