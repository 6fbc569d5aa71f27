#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/init/mount_table.h"

namespace contexts::init {

/// User ids of the context's own: its 0 to 65535 are the machine's `first` and the following, so
/// uid 0 in it is nobody outside. Files keep the owners that they have: the context's mounts are
/// idmapped (mount_setattr(2), MOUNT_ATTR_IDMAP, Linux 5.12).
class IdMap {
 public:
  /// None: ids are the machine's.
  IdMap() = default;

  /// Makes the user namespace, and tries all of `mounts` that hold anybody's files: an error says
  /// which file system cannot be idmapped. CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID are needed.
  static base::Result<IdMap> make(std::uint32_t first, const std::vector<MountEntry>& mounts);

  explicit operator bool() const { return static_cast<bool>(user_namespace_); }
  /// The machine's id of the context's user or group `id`: with no map the same; of one that the
  /// context does not have, its nobody's.
  std::uint32_t on_machine(std::uint32_t id) const;

  /// An idmapped copy of the mount at `path`, not attached anywhere, without those below it.
  base::Result<base::UniqueFd> mapped(const std::string& path) const;

  /// Replaces this process's root and all that is mounted there by idmapped copies.
  /// The mounts at `mapped_already` have such owners (overlays over idmapped copies).
  base::Result<void> map_mounts(const std::vector<std::string>& mapped_already) const;

  /// Makes this process root of the user namespace, with all capabilities there, also in its
  /// bounding set, and none outside. Not dumpable afterwards (prctl(2)).
  base::Result<void> enter() const;

 private:
  base::UniqueFd user_namespace_;
  std::uint32_t first_ = 0;
};

}  // namespace contexts::init
