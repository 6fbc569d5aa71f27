// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/content.h"

#include <elf.h>
#include <string.h>

namespace preload {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
constexpr unsigned kMachine32 = EM_386;
#else
constexpr unsigned kMachine = EM_AARCH64;
constexpr unsigned kMachine32 = EM_ARM;
#endif

/// Linux refuses larger program header tables: ELF_MIN_ALIGN's 64 KiB, fs/binfmt_elf.c.
constexpr unsigned long kMaxProgramHeaders = 65536;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool ends_word(char c) { return is_blank(c) || c == '\0'; }

template <typename Header>
Header header_of(const Head& head) {
  static_assert(sizeof(Header) <= kHeadBytes);
  Header header;
  memcpy(&header, head.bytes, sizeof(header));
  return header;
}

template <typename Header, typename ProgramHeader>
bool is_plausible(const Header& header, unsigned machine, unsigned long file_size) {
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) return false;
  if (header.e_machine != machine || header.e_phentsize != sizeof(ProgramHeader)) return false;
  const unsigned long table = header.e_phnum * sizeof(ProgramHeader);
  if (table == 0 || table > kMaxProgramHeaders) return false;
  return header.e_phoff <= file_size && table <= file_size - header.e_phoff;
}

bool is_elf(const Head& head) { return memcmp(head.bytes, ELFMAG, SELFMAG) == 0; }

bool is_runnable_elf(const Head& head, unsigned long file_size) {
  if (!is_elf(head)) return false;
  return is_plausible<Elf64_Ehdr, Elf64_Phdr>(header_of<Elf64_Ehdr>(head), kMachine, file_size) ||
         is_plausible<Elf32_Ehdr, Elf32_Phdr>(header_of<Elf32_Ehdr>(head), kMachine32, file_size);
}

/// The end of the "#!" line, trailing blanks cut off; nullptr if the name of the interpreter may
/// go on behind the head.
const char* line_end(const Head& head, const char* start) {
  const char* const limit = head.bytes + kHeadBytes;
  const char* end = static_cast<const char*>(memchr(head.bytes, '\n', kHeadBytes));
  if (end == nullptr) {
    const char* name = start;
    while (name < limit && is_blank(*name)) ++name;
    while (name < limit && !ends_word(*name)) ++name;
    if (name == limit) return nullptr;
    end = limit - 1;
  }
  while (end > start && is_blank(end[-1])) --end;
  return end;
}

bool script_interpreter(const Head& head, char (&interpreter)[kHeadBytes]) {
  if (head.bytes[0] != '#' || head.bytes[1] != '!') return false;
  const char* name = head.bytes + 2;
  const char* const end = line_end(head, name);
  if (end == nullptr) return false;
  while (name < end && is_blank(*name)) ++name;
  const char* name_end = name;
  while (name_end < end && !ends_word(*name_end)) ++name_end;
  if (name >= end) return false;
  const auto length = static_cast<size_t>(name_end - name);
  memcpy(interpreter, name, length);
  interpreter[length] = '\0';
  return true;
}

}  // namespace

Content classify(const Head& head, unsigned long file_size, char (&interpreter)[kHeadBytes]) {
  if (script_interpreter(head, interpreter)) return Content::script;
  return is_runnable_elf(head, file_size) ? Content::program : Content::unknown;
}

Extent elf_interpreter(const Head& head) {
  if (!is_elf(head)) return {};
  const auto header = header_of<Elf64_Ehdr>(head);
  if (header.e_machine != kMachine || header.e_phentsize != sizeof(Elf64_Phdr)) return {};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const unsigned long at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (header.e_phoff > kHeadBytes || at + sizeof(Elf64_Phdr) > kHeadBytes) break;
    Elf64_Phdr entry;
    memcpy(&entry, head.bytes + at, sizeof(entry));
    if (entry.p_type == PT_INTERP) return {entry.p_offset, entry.p_filesz};
  }
  return {};
}

}  // namespace preload
