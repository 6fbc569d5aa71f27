// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/argv_block.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "preload/raw.h"

namespace preload {
namespace {

/// The smallest page: memory is readable, or not, in steps of it.
constexpr uintptr_t kPageBytes = 4096;

/// Counts the words before the nullptr. The kernel is asked before each page is read: it would
/// answer a bad pointer with EFAULT, and so must this.
int count_words(char* const argv[], size_t& count) {
  count = 0;
  if (argv == nullptr) return 0;
  for (;; ++count) {
    const bool new_page = reinterpret_cast<uintptr_t>(argv + count) % kPageBytes < sizeof(char*);
    if ((count == 0 || new_page) && raw::probe(argv + count) != 0) return EFAULT;
    if (argv[count] == nullptr) return 0;
  }
}

/// Where pointers may begin in `scratch`: behind the path, if that is where the path lies.
size_t used_bytes(const Target& target, const Scratch& scratch) {
  const bool holds_path = target.path == scratch.bytes || target.script == scratch.bytes;
  const size_t used = holds_path ? strlen(scratch.bytes) + 1 : 0;
  return (used + sizeof(char*) - 1) / sizeof(char*) * sizeof(char*);
}

char* writable(const char* text) { return const_cast<char*>(text); }

}  // namespace

int ArgvBlock::build(const Target& target, char* const argv[], Scratch& scratch) {
  char* const head[] = {writable("airlock-stub"), writable("exec1"), writable(target.path),
                        writable(target.path), writable(target.script)};
  // A script's own argv[0] gives way to the shell's, as in execvp(3).
  const size_t heads = target.script != nullptr ? 5 : 3;
  size_t count;
  if (const int error = count_words(argv, count)) return error;
  const size_t skipped = target.script != nullptr && count > 0 ? 1 : 0;

  const size_t bytes = (heads + count - skipped + 1) * sizeof(char*);
  const size_t used = used_bytes(target, scratch);
  void* memory = used + bytes <= sizeof(scratch.bytes) ? scratch.bytes + used : slot_.take(bytes);
  if (memory == nullptr) return ENOMEM;
  words_ = static_cast<char**>(memory);
  memcpy(words_, head, heads * sizeof(char*));
  memcpy(words_ + heads, argv + skipped, (count - skipped) * sizeof(char*));
  words_[heads + count - skipped] = nullptr;
  return 0;
}

}  // namespace preload
