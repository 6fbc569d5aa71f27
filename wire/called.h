#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace wire {

/// Entry of the stub's auxiliary vector (getauxval(3)) by which a tracer names the program that was
/// to be exec'ed in its place; the stub's argv is then that program's, untouched. Linux's own
/// types are below 64.
constexpr std::uint64_t kTracedTarget = 0x61697264;

/// A random secret in the padding of an ELF header (e_ident[9] to [15], elf(5)), which the kernel
/// ignores and linkers leave zero. Where binfmt_misc makes every ELF file a stub, files with it are
/// left out.
constexpr std::size_t kMarkOffset = 9;
constexpr std::size_t kMarkSize = 7;

}  // namespace wire
