// Pure: what Linux would make of a file's first bytes (fs/binfmt_elf.c, fs/binfmt_script.c).
#pragma once

#include <stddef.h>

namespace preload {

/// What the kernel reads before it chooses a binary format: BINPRM_BUF_SIZE, linux/binfmts.h.
inline constexpr size_t kHeadBytes = 256;

/// The first bytes of a file, padded with zeros.
struct Head {
  char bytes[kHeadBytes];
};

enum class Content {
  program,  // an ELF file this kernel runs
  script,   // "#!" and the name of an interpreter
  unknown,  // ENOEXEC, unless binfmt_misc knows better
};

/// `file_size` in bytes: program headers beyond the end of the file make it unknown. For a script
/// the interpreter's path goes to `interpreter`, terminated.
Content classify(const Head& head, unsigned long file_size, char (&interpreter)[kHeadBytes]);

/// A piece of a file.
struct Extent {
  unsigned long offset;
  unsigned long size;  // 0: there is no such piece
};

/// Where a program names its ELF interpreter (ld.so), as far as the head shows it.
Extent elf_interpreter(const Head& head);

}  // namespace preload
