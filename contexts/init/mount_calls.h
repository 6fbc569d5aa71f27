#pragma once

#include <sys/mount.h>
#include <sys/syscall.h>

#include <string>

#include "base/raw_syscall.h"
#include "base/result.h"

namespace contexts::init {

// System calls of Linux 5.2 that musl 1.2 has no functions for. Raw: also for a CLONE_VM child.
// They return -errno, which is `errno`'s value negated (base/raw_syscall.h).

constexpr unsigned kCloneTree = 1;                // OPEN_TREE_CLONE, linux/mount.h
constexpr unsigned kCloneTreeCloexec = 02000000;  // OPEN_TREE_CLOEXEC = O_CLOEXEC
constexpr unsigned kFromEmptyPath = 4;            // MOVE_MOUNT_F_EMPTY_PATH

/// A detached copy of the mount at `path`. With AT_SYMLINK_NOFOLLOW that can be of a symlink.
inline long open_tree(int folder, const char* path, unsigned flags) {
  return base::raw::call(SYS_open_tree, folder, path, flags | kCloneTreeCloexec);
}

/// Attaches the detached mount `tree` at `path`, from `folder` on or AT_FDCWD; if that is a
/// symlink, over the link itself.
inline long move_mount(int tree, int folder, const char* path) {
  return base::raw::call(SYS_move_mount, tree, "", folder, path, kFromEmptyPath);
}

/// Binds `source`, with all that is mounted there, to `target`.
inline base::Result<void> bind_tree(const std::string& source, const std::string& target) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return base::os_error("bind " + source + " into the context's root");
  }
  return {};
}

}  // namespace contexts::init
