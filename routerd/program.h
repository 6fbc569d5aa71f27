#pragma once

#include <string>

#include "base/result.h"
#include "routerd/routing.h"

namespace routerd {

/// What a program turns out to be once its `#!` lines and PATH are followed.
struct Program {
  /// Resolved path of the file that was named.
  std::string path;
  /// Resolved path of the script, empty if there is none; as the kernel passes it to the
  /// interpreter: not resolved.
  std::string script;
  /// Resolved path of the executable that runs in the end.
  std::string executable;
  /// No program interpreter (PT_INTERP): the preloaded library cannot be loaded into it.
  bool is_static = false;

  AgentIdentity identity() const;
};

/// Finds `name` in `search_path` (as execvp(3); with a '/' relative to `cwd`) and looks into it.
/// ENOENT: no such program or interpreter; EACCES: not executable; ENOEXEC: neither ELF nor script.
base::Result<Program> inspect_program(const std::string& name, const std::string& search_path,
                                      const std::string& cwd);

/// Device and inode of `path`, unknown if it cannot be read.
FileId file_id(const std::string& path);

}  // namespace routerd
