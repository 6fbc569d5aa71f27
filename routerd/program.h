#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "routerd/routing.h"

namespace routerd {

/// What a program turns out to be once its `#!` lines and PATH are followed.
struct Program {
  /// Path of the file that was named, as the search gave it, and resolved.
  std::string found;
  std::string path;
  /// Resolved path of the script, empty if there is none; as the kernel passes it to the
  /// interpreter: not resolved.
  std::string script;
  /// Resolved path of the executable that runs in the end.
  std::string executable;
  /// Of a script: resolved paths of the programs its `#!` lines name, the outermost first; for
  /// `#!/usr/bin/env NAME` that is NAME's, and `env` the resolved path of env(1).
  std::vector<std::string> interpreters;
  std::string env;
  /// Every file that is executed on the way: scripts, their interpreters, env, ELF interpreters.
  std::vector<std::string> files;
  /// The preloaded library cannot be loaded into it: no program interpreter (PT_INTERP), or musl's.
  bool is_static = false;
  /// musl's: with LD_PRELOAD set to a library made for glibc the program would not start.
  bool is_musl = false;
};

/// Finds `name` in `search_path` (as execvp(3); with a '/' relative to `cwd`) and looks into it.
/// ENOENT: no such program or interpreter; EACCES: not executable; ENOEXEC: neither ELF nor script.
base::Result<Program> inspect_program(const std::string& name, const std::string& search_path,
                                      const std::string& cwd);

/// Identity of the file at `path` (symlinks followed), unknown if it cannot be read.
FileId file_id(const std::string& path);

}  // namespace routerd
