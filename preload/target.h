// What the stub is told to run. /proc/self/..., /dev/fd/N and bare fds mean something else (or
// nothing) once the stub has been exec'ed, so they become paths, or fds that survive, beforehand.
#pragma once

#include "preload/scratch.h"

namespace preload {

struct Target {
  /// The caller's own string, or one at the start of the scratch buffer.
  const char* path = nullptr;
  /// The file that /bin/sh is to read in place of an exec that gives ENOEXEC; then `path` is the
  /// shell. nullptr otherwise. Same storage as `path`.
  const char* script = nullptr;
  /// An fd opened without close-on-exec because no path leads to the file (memfd, deleted); -1.
  /// Whoever called closes it when the exec has failed or a spawn has returned.
  int kept_fd = -1;
};

// All return 0 or an errno and are async-signal-safe. A file that is found does not mean that it
// can be executed.

/// `path` relative to the current directory. It must be readable memory.
int resolve_path(const char* path, Scratch& scratch, Target& target);

/// The file open at `fd`.
int resolve_fd(int fd, Scratch& scratch, Target& target);

/// `path`, relative and not empty, below the directory open at `dirfd`.
int resolve_below(int dirfd, const char* path, Scratch& scratch, Target& target);

/// Writes "/proc/self/fd/<fd>", and "/<path>" behind it unless nullptr. ENAMETOOLONG, else 0.
int write_fd_path(int fd, const char* path, Scratch& scratch);

/// The N of "/proc/self/fd/N", "/proc/thread-self/fd/N" and "/dev/fd/N"; else -1.
int fd_named_by(const char* path);

bool is_close_on_exec(int fd);

}  // namespace preload
