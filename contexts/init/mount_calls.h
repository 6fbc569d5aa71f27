#pragma once

#include <sys/syscall.h>

#include "base/raw_syscall.h"

// System calls of Linux 5.2 that musl 1.2 has no functions for. Raw: also for a CLONE_VM child. All
// return -errno, which is `errno`'s value negated (base/raw_syscall.h).
namespace contexts::init {

constexpr unsigned kCloneTree = 1;                // OPEN_TREE_CLONE, linux/mount.h
constexpr unsigned kCloneTreeCloexec = 02000000;  // OPEN_TREE_CLOEXEC = O_CLOEXEC
constexpr unsigned kFromEmptyPath = 4;            // MOVE_MOUNT_F_EMPTY_PATH

/// A detached copy of the mount at `path`.
inline long open_tree(int folder, const char* path, unsigned flags) {
  return base::raw::call(SYS_open_tree, folder, path, flags | kCloneTreeCloexec);
}

/// Attaches the detached mount `tree` at `path`, from `folder` on or AT_FDCWD.
inline long move_mount(int tree, int folder, const char* path) {
  return base::raw::call(SYS_move_mount, tree, "", folder, path, kFromEmptyPath);
}

}  // namespace contexts::init
