#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/called.h"

// Pure: the binfmt_misc entries that make every ELF file an exec of the stub, but for the stub
// itself. An entry can only name bits that a file must have, so what is *not* to match is left out
// by a cover of all else: one entry per bit, for files that differ from it there first.
namespace contexts::init {

using Mark = std::array<std::uint8_t, wire::kMarkSize>;

/// Lines for binfmt_misc's `register`, each at most 1 KiB, in any order: ELF files become execs of
/// `interpreter`, which has no ':' and is opened at once (flag F), unless they have `mark`.
std::vector<std::string> binfmt_entries(const Mark& mark, const std::string& interpreter);

}  // namespace contexts::init
