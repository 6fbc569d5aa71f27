// posix_spawn and its family, routed: the real function spawns the stub.
#pragma once

#include "preload/self.h"

namespace preload {

enum class Lookup {
  as_given,  // posix_spawn
  in_path,   // posix_spawnp
};

struct SpawnCall {
  SpawnFunction real;
  int* id;  // out: a pid or a pidfd, as `real` has it
  const char* file;
  Lookup lookup = Lookup::as_given;
  const posix_spawn_file_actions_t* actions = nullptr;
  const posix_spawnattr_t* attributes = nullptr;
  char* const* argv;
  char* const* envp;
};

/// 0 or an errno value, never -1. The file is checked here, in the parent, so that a missing
/// program is this function's ENOENT and not a child's exit status. Async-signal-safe.
int spawn(const SpawnCall& call);

/// Notes in `actions` itself that the child will change its directory, so that a relative path is
/// not checked in the parent's.
void remember_chdir(posix_spawn_file_actions_t* actions);

}  // namespace preload
