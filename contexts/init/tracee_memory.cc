#include "contexts/init/tracee_memory.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "contexts/init/registers.h"

namespace contexts::init {
namespace {

using Word = std::uint64_t;
constexpr std::size_t kWord = sizeof(Word);
constexpr std::size_t kPage = 4096;

/// Moves `size` bytes at once; false if that is not allowed here, or the range is not all there.
bool move_at_once(long number, pid_t tracee, std::uintptr_t theirs, void* ours, std::size_t size) {
  iovec local{ours, size};
  iovec remote{reinterpret_cast<void*>(theirs), size};
  // The last words are passed in memory, as long as a long (syscall(2)).
  return ::syscall(number, tracee, &local, 1L, &remote, 1L, 0L) == static_cast<long>(size);
}

bool peek(pid_t tracee, std::uintptr_t at, Word& word) {
  // The raw call stores the word; libc's wrapper returns it, with errno for the failure.
  return ::syscall(SYS_ptrace, PTRACE_PEEKDATA, tracee, at, &word) == 0;
}

}  // namespace

bool read_memory(pid_t tracee, std::uintptr_t from, void* to, std::size_t size) {
  if (move_at_once(SYS_process_vm_readv, tracee, from, to, size)) return true;
  auto* out = static_cast<char*>(to);
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t aligned = (from + done) & ~(kWord - 1);
    const std::size_t offset = from + done - aligned;
    const std::size_t count = std::min(kWord - offset, size - done);
    Word word = 0;
    if (!peek(tracee, aligned, word)) return false;
    std::memcpy(out + done, reinterpret_cast<const char*>(&word) + offset, count);
    done += count;
  }
  return true;
}

bool write_memory(pid_t tracee, std::uintptr_t to, const void* from, std::size_t size) {
  if (move_at_once(SYS_process_vm_writev, tracee, to, const_cast<void*>(from), size)) return true;
  const auto* in = static_cast<const char*>(from);
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t aligned = (to + done) & ~(kWord - 1);
    const std::size_t offset = to + done - aligned;
    const std::size_t count = std::min(kWord - offset, size - done);
    Word word = 0;
    if (count < kWord && !peek(tracee, aligned, word)) return false;
    std::memcpy(reinterpret_cast<char*>(&word) + offset, in + done, count);
    if (::syscall(SYS_ptrace, PTRACE_POKEDATA, tracee, aligned, word) != 0) return false;
    done += count;
  }
  return true;
}

bool read_string(pid_t tracee, std::uintptr_t from, std::size_t limit, std::string& text) {
  text.clear();
  while (text.size() < limit) {
    // Never across a page: the next one may not be there.
    char bytes[256];
    const std::size_t size = std::min(sizeof bytes, kPage - from % kPage);
    if (!read_memory(tracee, from, bytes, size)) return false;
    const auto* end = static_cast<const char*>(std::memchr(bytes, '\0', size));
    text.append(bytes, end != nullptr ? static_cast<std::size_t>(end - bytes) : size);
    if (end != nullptr) return text.size() < limit;
    from += size;
  }
  return false;
}

namespace {

/// What a new program finds at its stack pointer: argc, argv, environ and the auxiliary vector,
/// each terminated (the System V ABI of the machine, "Process Initialization").
class InitialStack {
 public:
  bool read_from(pid_t tracee, std::uintptr_t at) {
    std::size_t end = 0;
    for (words_.clear(); (end = find_end()) == 0;) {
      const std::uintptr_t from = at + words_.size() * kWord;
      const std::size_t count = (kPage - from % kPage) / kWord;
      words_.resize(words_.size() + count);
      if (!read_memory(tracee, from, &words_[words_.size() - count], count * kWord)) return false;
    }
    words_.resize(end);
    return true;
  }

  void add_auxiliary(Word type, Word value) {
    words_.insert(words_.end() - 2, {type, value});  // before AT_NULL
  }
  const std::vector<Word>& words() const { return words_; }

 private:
  /// The number of words up to and with AT_NULL; 0 if that has not been read yet.
  std::size_t find_end() const {
    std::size_t at = 1;
    for (int list = 0; list < 2; ++list) {
      while (at < words_.size() && words_[at] != 0) ++at;
      ++at;
    }
    while (at + 1 < words_.size() && words_[at] != AT_NULL) at += 2;
    return at + 1 < words_.size() ? at + 2 : 0;
  }

  std::vector<Word> words_;
};

}  // namespace

std::uintptr_t leave_string(pid_t tracee, const std::string& text, std::uint64_t auxiliary_type) {
  Registers registers;
  InitialStack stack;
  if (!registers.read_from(tracee) || !stack.read_from(tracee, registers.stack())) return 0;
  const std::uintptr_t end = registers.stack() + stack.words().size() * kWord;
  const std::uintptr_t place = (end - text.size() - 1) & ~(kWord - 1);
  if (auxiliary_type != 0) stack.add_auxiliary(auxiliary_type, place);
  const std::size_t size = stack.words().size() * kWord;
  constexpr std::uintptr_t kAlignment = 16;  // of the stack pointer at the start
  const std::uintptr_t moved = (place - size) & ~(kAlignment - 1);
  // Between the vector's end and the text may be up to 15 bytes: they belong to nobody.
  registers.set_stack(moved);
  const bool done = write_memory(tracee, place, text.c_str(), text.size() + 1) &&
                    write_memory(tracee, moved, stack.words().data(), size) &&
                    registers.write_to(tracee);
  return done ? place : 0;
}

}  // namespace contexts::init
