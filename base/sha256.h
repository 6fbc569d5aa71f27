#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace base {

using Sha256 = std::array<std::uint8_t, 32>;

/// The SHA-256 of `bytes` (FIPS 180-4). Pure.
Sha256 sha256(std::string_view bytes);

/// Whether two hashes are equal; takes as long for all of them.
bool is_equal_in_constant_time(const Sha256& a, const Sha256& b);

}  // namespace base
