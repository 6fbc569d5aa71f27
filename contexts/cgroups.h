#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contexts/limits.h"

// Control groups, version 1 and 2 (cgroups(7)), as far as limits of contexts need them. They are an
// extra: most containers mount them read-only.
namespace contexts {

/// Where cgroups with one controller can be made.
struct CgroupPlace {
  /// Candidates, best first: absolute folders below a cgroup mount.
  std::vector<std::string> folders;
  bool is_v2 = false;
  bool operator==(const CgroupPlace&) const = default;
};

/// The place of `controller` ("pids", "memory", "cpu"): the cgroup of who asks and, for version 2,
/// in which a cgroup with processes cannot have children with controllers, the one above it. From
/// /proc/self/mountinfo and /proc/self/cgroup. Nothing: it is not mounted. Pure.
std::optional<CgroupPlace> place_of(std::string_view controller, std::string_view mountinfo,
                                    std::string_view own_cgroups);

/// The cgroups of one context, one per hierarchy. Removes them when it goes, or, while somebody is
/// left in them, leaves that to the next daemon's remove_stale_cgroups().
class Cgroups {
 public:
  Cgroups() = default;
  ~Cgroups() { remove(); }
  Cgroups(Cgroups&& other) noexcept { *this = std::move(other); }
  Cgroups& operator=(Cgroups&& other) noexcept;

  /// Makes what `limits` asks for as far as cgroups can be had. The name of each is
  /// airlock-RANDOM-`name`.
  static Cgroups create(const std::string& name, const Limits& limits);
  /// Makes one of version 2 where there is none of it yet, so that id() tells the sockets of this
  /// context from others'. Without a writable cgroup nothing happens.
  void mark_sockets();
  /// Of version 2, as sock_diag(7) tells it; 0 without one.
  std::uint64_t id() const;

  /// "cgroup v1" or "cgroup v2" if the limit of that name is kept by one, else empty.
  std::string keeps(const std::string& limit) const;
  /// Why a limit is not kept by a cgroup; empty if it is or was not asked for.
  std::string why_not(const std::string& limit) const;
  /// Moves a process, and with it what it starts from then on.
  base::Result<void> add(pid_t pid);
  /// How often a limit was hit: refused forks, processes killed for memory, periods throttled.
  std::uint64_t hits(const std::string& limit) const;

 private:
  struct Group {
    std::string folder;
    bool is_v2 = false;
  };
  base::Result<void> make(const std::string& limit);
  void remove();

  std::string name_;
  Limits limits_;
  /// By the folder they are in.
  std::map<std::string, Group> groups_;
  /// Limit to the key in groups_.
  std::map<std::string, std::string> kept_;
  std::map<std::string, std::string> reasons_;
};

/// Removes cgroups that daemons which were killed have left. Those in use the kernel keeps (EBUSY).
void remove_stale_cgroups();

}  // namespace contexts
