// "sh -c COMMAND", routed: what system, popen and wordexp are made of.
#pragma once

#include <errno.h>
#include <spawn.h>

namespace preload {

/// Spawns the stub for /bin/sh with argv {argv0, flag, command}. 0 or an errno value.
int spawn_shell(int* pid, const char* argv0, const char* flag, const char* command,
                const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                char* const envp[]);

/// waitpid(2) until it is not interrupted. -1 (errno set) if the child is not ours to wait for.
int wait_for(int pid);

/// Puts errno back: these functions leave it alone when they succeed.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = saved_; }
  void replace(int error) { saved_ = error; }

 private:
  int saved_ = errno;
};

}  // namespace preload
