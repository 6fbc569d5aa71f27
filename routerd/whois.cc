#include "routerd/whois.h"

#include <algorithm>

#include "routerd/daemon.h"

namespace routerd {
namespace {

/// Inits of all contexts.
std::set<pid_t> inits_of(const Daemon& daemon) {
  std::set<pid_t> inits;
  for (const auto& [name, hosted] : daemon.hosted()) inits.insert(hosted->context->init_pid());
  return inits;
}

const contexts::Context* maker_of(const Daemon& daemon, const ports::TcpSocket& socket) {
  for (const auto& [name, hosted] : daemon.hosted()) {
    if (hosted->context->has_made(socket.cgroup, socket.uid)) return hosted->context.get();
  }
  return nullptr;
}

/// Whether `pid`, which cannot be looked into, may be trusted not to hold user code's sockets: an
/// init, a spawner (its child, non-dumpable as well), the control plane, and who is above contexts.
bool is_trusted(const ProcessTable& table, pid_t pid, pid_t init, pid_t control) {
  return init == 0 || pid == init || table.parent_of(pid) == init || init == control;
}

SocketHolders look_for(const ProcessTable& table, const std::set<pid_t>& inits, pid_t control,
                       ino_t inode) {
  SocketHolders facts;
  for (const auto& [pid, parent] : table.parents()) {
    const pid_t init = table.nearest(pid, inits);
    const auto held = sockets_held_by(pid, {inode});
    if (!held.inodes.empty()) facts.holders.push_back(init);
    const bool is_closed = held.error == EACCES || held.error == EPERM;
    if (is_closed && !is_trusted(table, pid, init, control)) facts.closed.insert(init);
  }
  return facts;
}

}  // namespace

pid_t only_owner(const SocketHolders& facts) {
  const pid_t maker = facts.maker;
  const bool has_other =
      std::ranges::any_of(facts.holders, [maker](pid_t holder) { return holder != maker; }) ||
      std::ranges::any_of(facts.closed, [maker](pid_t closed) { return closed != maker; });
  return maker == 0 || facts.holders.empty() || has_other ? 0 : maker;
}

// Outside is decided by the address: a program of this machine may close its socket before we look.
Origin whois(Daemon& daemon, const ports::Endpoint& client, const ports::Endpoint& server) {
  const auto socket = ports::find_connected(client, server);
  if (!socket) return {};
  if (!*socket) {
    return {ports::is_local(client.address()) ? Origin::Kind::unknown : Origin::Kind::outside};
  }
  const auto* maker = maker_of(daemon, **socket);
  if (maker == nullptr || (*socket)->inode == 0) return {};
  const auto* control = daemon.find(services::kControl);
  auto facts = look_for(ProcessTable::read(), inits_of(daemon),
                        control != nullptr ? control->context->init_pid() : 0, (*socket)->inode);
  facts.maker = maker->init_pid();
  if (only_owner(facts) == 0) return {};
  return {Origin::Kind::context, maker->name()};
}

}  // namespace routerd
