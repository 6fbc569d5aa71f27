#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

// The memory of a stopped tracee: process_vm_readv(2) and process_vm_writev(2), or, where a
// container's seccomp profile refuses those, word by word with ptrace(2).
namespace contexts::init {

bool read_memory(pid_t tracee, std::uintptr_t from, void* to, std::size_t size);
bool write_memory(pid_t tracee, std::uintptr_t to, const void* from, std::size_t size);

/// The terminated string at `from`; false if it cannot be read or has `limit` bytes or more.
bool read_string(pid_t tracee, std::uintptr_t from, std::size_t limit, std::string& text);

/// Puts `text` on the stack of a program that has just been exec'ed and has not run yet, between
/// its strings and the auxiliary vector, where no program looks. Returns its address, 0 on
/// failure. `auxiliary_type` != 0: an entry of that type tells the program the address
/// (getauxval(3)).
std::uintptr_t leave_string(pid_t tracee, const std::string& text, std::uint64_t auxiliary_type);

}  // namespace contexts::init
