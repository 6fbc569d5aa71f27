#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/init/binfmt_cover.h"

// What a user namespace with a binfmt_misc of its own is made of: by binfmt.h for an agent's start,
// by binfmt_again.h each time it runs one of its own programs again.
namespace contexts::init {

/// The place for binfmt_misc in every /proc, empty where it is not mounted; from inside it looks
/// so.
constexpr const char* kBinfmtPlace = "/proc/sys/fs/binfmt_misc";

/// Limits of the user namespace of whoever looks at them.
constexpr const char* kLimitsPlace = "/proc/sys/user";

/// No id of such a user namespace, so no capability of it opens what belongs to it
/// (capable_wrt_inode_uidgid, kernel/capability.c).
constexpr std::uint32_t kNobody = 4294967294;

base::Result<void> mount_at(const char* source, const std::string& target, const char* type,
                            unsigned long flags, const char* options = nullptr);

/// Whether this user namespace has an id 0. The files of a binfmt_misc belong to that.
bool has_id_0();

/// Gives the new user namespace of `program` the ids of this one, each as it is; where there is no
/// id 0, this process's stands for it. 0 or -errno.
int map_ids_of(pid_t program);

/// Mounts this user namespace's binfmt_misc with all entries, *turned off*, and hides it. Gives its
/// `status`, which turns them on. The entries last as long as the mount namespace.
base::Result<base::UniqueFd> register_entries(const std::string& stub, const Mark& mark);

/// Where id 0 stands for this one (map_ids_of()): in a user namespace below, with the same
/// binfmt_misc, it is itself again.
base::Result<void> become_own_id_again(unsigned uid, unsigned gid);

/// How many user namespaces may be made below this one. A program that makes one could have a
/// binfmt_misc without these entries.
base::Result<void> allow_user_namespaces(unsigned count);

/// A file, by what no name changes. Inode 0: unknown.
struct FileOnDisk {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// The executable of `program`.
FileOnDisk file_of(pid_t program);

/// Waits for the exec of the seized `program`; then, before its first instruction, turns the
/// entries on and lets it go. If it has become another file than `wanted`, it is killed.
void enable_at_exec(pid_t program, int status_file, std::optional<FileOnDisk> wanted);

}  // namespace contexts::init
