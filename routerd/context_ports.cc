#include "routerd/context_ports.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "routerd/process_table.h"

namespace routerd {
namespace {

std::string name_of(pid_t pid) {
  auto name = base::read_file("/proc/" + std::to_string(pid) + "/comm");
  if (!name) return {};
  if (name->ends_with('\n')) name->pop_back();
  return std::move(*name);
}

}  // namespace

base::Result<std::vector<ContextPort>> ports_of(const contexts::Context& context,
                                                std::uint16_t port) {
  const auto sockets = ports::listening();
  if (!sockets) return tl::unexpected<base::Error>(sockets.error());
  std::map<ino_t, ports::Endpoint> wanted;
  std::set<ino_t> inodes;
  for (const auto& socket : *sockets) {
    if (port != 0 && socket.local.port() != port) continue;
    wanted.emplace(socket.inode, socket.local);
    inodes.insert(socket.inode);
  }
  std::vector<ContextPort> found;
  if (inodes.empty()) return found;
  const auto table = ProcessTable::read();
  for (const auto& [pid, parent] : table.parents()) {
    if (table.nearest(pid, {context.init_pid()}) == 0) continue;
    for (const ino_t inode : sockets_held_by(pid, inodes).inodes) {
      inodes.erase(inode);  // one of those that have it is enough
      found.push_back({wanted.at(inode), inner_pid(pid), name_of(pid)});
    }
  }
  std::ranges::sort(found, {}, &ContextPort::local);
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.local.port(); });
  return found;
}

}  // namespace routerd
