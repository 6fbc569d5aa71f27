// The errno an exec would give, found before the stub is exec'ed: afterwards it would be too late,
// the caller's image is gone. Everything is asked in the caller's own view of the file system.
#pragma once

namespace preload {

struct CheckOptions {
  /// The program will start in a directory this process does not know (posix_spawn's chdir
  /// actions): a relative interpreter is taken on trust.
  bool cwd_unknown = false;
  /// The file is named by a close-on-exec fd, so an interpreter could not open it (ENOENT).
  bool hidden_from_interpreter = false;
};

/// 0 if execve(2) of `path` would succeed as far as the file, its "#!" and ELF interpreters can
/// tell, else the errno it would give. Not seen: ETXTBSY, EPERM, ENOMEM, security modules.
/// Async-signal-safe, about 1 KiB of stack.
int check_program(const char* path, CheckOptions options = {});

}  // namespace preload
