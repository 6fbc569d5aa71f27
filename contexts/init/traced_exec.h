#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "contexts/init/registers.h"

namespace contexts::init {

/// Identity of a file.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

/// Of what is open or lies at `path`; zeros if it cannot be read.
FileId file_id(const char* path);

/// What a stopped execve(2) or execveat(2) is about to do.
struct TracedExec {
  enum class Fate {
    /// The kernel will refuse it, with the errno it always gives: let it.
    fails,
    /// It names the stub itself.
    stub,
    /// It would run a program, named by `target`.
    runs,
    /// It would run a program that the stub could not name: a close-on-exec descriptor of a file
    /// without a path, or any file seen from another root.
    unnameable,
  };
  Fate fate = Fate::fails;
  /// What the stub is to route: a path as the caller gave it, if that means the same after an exec.
  std::string target;
};

/// Looks at the system call `registers` of `tracee`, in the tracee's own view: its root, working
/// folder and descriptors. Permission is asked with this process's file system ids (setfsuid(2)).
TracedExec look_at_exec(pid_t tracee, const Registers& registers, const FileId& stub);

}  // namespace contexts::init
