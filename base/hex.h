#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace base {

/// Two lower-case hexadecimal digits a byte. Pure.
inline std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const auto byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace base
