#pragma once

#include <optional>
#include <string>

#include "wire/message.h"

// How this stub came to be exec'ed, and so what its caller wanted.
namespace stub {

struct Called {
  wire::CaughtBy by = wire::CaughtBy::interposer;
  /// The program, as the kernel would have got it.
  std::string target;
  /// The script whose interpreter the target is, or empty.
  std::string script;
  /// Its argv; the caller's own words. Ends with nullptr.
  char** argv = nullptr;
  /// Of the router socket.
  std::string folder;
  /// Under binfmt: the program's file as the kernel opened it for us (flag O); -1 else.
  int program_fd = -1;

  /// True if the target is a file without a path, so that the program needs the descriptor.
  bool is_target_fd() const {
    return program_fd >= 0 && target == "/proc/self/fd/" + std::to_string(program_fd);
  }
};

/// Nothing: by hand, and not in place of a program.
///
/// By its own name it takes `exec1 TARGET ARGV…` from the interposer (preload/README.md). By
/// another name it is a shim (contexts/farm.h): that name is the program. If the kernel started it
/// as the interpreter of a script, AT_EXECFN is the script, and the program is argv[0], the name of
/// the `#!` line (execve(2)). As the interpreter of ELF files (contexts/init/binfmt.h) it gets
/// `STUB PROGRAM ARGV…`. A tracer names the program in the auxiliary vector (wire/called.h), and
/// argv is the program's.
std::optional<Called> how_called(int argc, char** argv);

}  // namespace stub
