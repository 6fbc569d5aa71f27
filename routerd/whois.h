#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "routerd/ports/sockets.h"
#include "routerd/process_table.h"

namespace routerd {

class Daemon;

/// Where a TCP connection to a port of this machine comes from.
struct Origin {
  enum class Kind {
    /// From this machine, and it cannot be proven from where.
    unknown,
    /// From another machine, or network namespace. Whoever forwards connections from there to here
    /// makes his clients' origin this one.
    outside,
    /// Made by a program of `context`, and nobody else has it.
    context,
  };
  Kind kind = Kind::unknown;
  std::string context = {};
  bool operator==(const Origin&) const = default;
};

/// What decides whether a socket is a context's: `maker` and `holders` are inits of contexts, 0 for
/// what is none's.
struct SocketHolders {
  pid_t maker = 0;
  std::vector<pid_t> holders;
  /// Of contexts, those with a process that could not be looked into.
  std::set<pid_t> closed;
};

/// The init of the context that provably has the socket alone, 0 if there is none. Pure. The maker
/// is what the kernel has noted (a cgroup, or a context's own uid), so nobody can pretend to be it;
/// the holders are those whose descriptors can be seen. A context that gives its connection away on
/// purpose, to one that hides it, cannot be told from one that does not.
pid_t only_owner(const SocketHolders& facts);

/// Blocks for about 20 µs per process of this machine.
Origin whois(Daemon& daemon, const ports::Endpoint& client, const ports::Endpoint& server);

}  // namespace routerd
