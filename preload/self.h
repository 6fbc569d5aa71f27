// Where this library was loaded from, and what it found behind itself in the symbol search order.
#pragma once

#include <spawn.h>
#include <stdio.h>
#include <wordexp.h>

namespace preload {

/// posix_spawn and pidfd_spawn have the same shape: pid_t and a pidfd are both int.
using SpawnFunction = int (*)(int*, const char*, const posix_spawn_file_actions_t*,
                              const posix_spawnattr_t*, char* const[], char* const[]);

/// libc's own functions; nullptr where this libc has none.
struct RealFunctions {
  SpawnFunction posix_spawn;
  SpawnFunction pidfd_spawn;
  int (*add_chdir)(posix_spawn_file_actions_t*, const char*);
  int (*add_fchdir)(posix_spawn_file_actions_t*, int);
  int (*pclose)(FILE*);
  int (*wordexp)(const char*, wordexp_t*, int);
};

/// The stub's absolute path, "airlock-stub" beside this library; nullptr if it cannot be known, in
/// which case every exec must fail with EACCES. Async-signal-safe once the constructor has run.
const char* stub_path();

/// `path` is the stub's own path, to the letter. `path` must be readable.
bool is_stub(const char* path);

/// The errno to report when the kernel or posix_spawn refused to exec the stub with `error`:
/// EACCES if the stub itself cannot be executed (its ENOENT would be read as the target's).
int blame_stub(int error);

const RealFunctions& real();

}  // namespace preload
