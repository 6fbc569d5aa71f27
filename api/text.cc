#include "api/text.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace api {
namespace {

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

bool is_continuation(std::uint8_t byte) { return (byte & 0xc0) == 0x80; }

/// Bytes of the character that starts with `first`; 0 if none does.
std::size_t length_of(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// The second byte is what tells overlong forms, surrogates and too large code points.
bool fits(std::uint8_t first, std::uint8_t second) {
  if (first == 0xe0) return second >= 0xa0 && second <= 0xbf;
  if (first == 0xed) return second >= 0x80 && second <= 0x9f;
  if (first == 0xf0) return second >= 0x90 && second <= 0xbf;
  if (first == 0xf4) return second >= 0x80 && second <= 0x8f;
  return is_continuation(second);
}

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The two letters of each twelve bits.
constexpr auto make_pairs() {
  std::array<std::array<char, 2>, 4096> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kAlphabet[i >> 6], kAlphabet[i & 63]};
  return pairs;
}

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}

// Most of what programs print is plain ASCII: eight bytes at a time.
constexpr std::uint64_t kEachByte = 0x0101010101010101;

std::uint64_t eight_at(std::string_view bytes, std::size_t at) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, bytes.data() + at, sizeof eight);
  return eight;
}

bool is_ascii(std::uint64_t eight) { return (eight & kEachByte * 0x80) == 0; }

/// Whether one of eight bytes is less than `limit`, 128 at most (Anderson, Bit Twiddling Hacks,
/// "hasless").
std::uint64_t has_less(std::uint64_t eight, std::uint64_t limit) {
  return (eight - kEachByte * limit) & ~eight & kEachByte * 0x80;
}

/// Whether JSON has to escape one of eight bytes.
bool has_special(std::uint64_t eight) {
  return (has_less(eight, 0x20) | has_less(eight ^ kEachByte * '"', 1) |
          has_less(eight ^ kEachByte * '\\', 1)) != 0;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes.size() - at >= 8 && is_ascii(eight_at(bytes, at))) {
      at += 8;
      continue;
    }
    const std::uint8_t first = byte_at(bytes, at);
    const std::size_t length = length_of(first);
    if (length == 0 || length > bytes.size() - at) return false;
    if (length > 1 && !fits(first, byte_at(bytes, at + 1))) return false;
    for (std::size_t i = 2; i < length; ++i) {
      if (!is_continuation(byte_at(bytes, at + i))) return false;
    }
    at += length;
  }
  return true;
}

std::size_t incomplete_tail(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const std::uint8_t byte = byte_at(bytes, bytes.size() - back);
    if (is_continuation(byte)) continue;
    return length_of(byte) > back ? back : 0;
  }
  return 0;
}

std::size_t orphaned_head(std::string_view bytes) {
  std::size_t count = 0;
  while (count < 3 && count < bytes.size() && is_continuation(byte_at(bytes, count))) ++count;
  return count;
}

std::string to_base64(std::string_view bytes) {
  static constexpr auto kPairs = make_pairs();
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  char* to = text.data();
  std::size_t at = 0;
  for (; bytes.size() - at >= 3; at += 3, to += 4) {
    const std::uint32_t group = std::uint32_t{byte_at(bytes, at)} << 16 |
                                std::uint32_t{byte_at(bytes, at + 1)} << 8 | byte_at(bytes, at + 2);
    std::memcpy(to, kPairs[group >> 12].data(), 2);
    std::memcpy(to + 2, kPairs[group & 4095].data(), 2);
  }
  const std::size_t left = bytes.size() - at;
  if (left == 0) return text;
  const std::uint32_t first = std::uint32_t{byte_at(bytes, at)} << 4;
  const std::uint32_t rest = left == 2 ? byte_at(bytes, at + 1) : 0u;
  std::memcpy(to, kPairs[first | rest >> 4].data(), 2);
  if (left == 2) to[2] = kAlphabet[(rest & 15) << 2];
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  static constexpr auto kValues = make_values();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t group = 0;
  std::size_t bits = 0;
  for (const char c : text) {
    const auto value = kValues[static_cast<std::uint8_t>(c)];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint8_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<char>(group >> bits & 0xff));
    }
  }
  // Bits that stand for nothing must be 0: one text per value.
  if ((group & ((1u << bits) - 1)) != 0 || bits >= 6) return std::nullopt;
  return bytes;
}

void append_json_string(std::string& target, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  target.push_back('"');
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    while (text.size() - at > 8 && !has_special(eight_at(text, at))) at += 8;
    const std::uint8_t byte = byte_at(text, at);
    if (byte >= 0x20 && byte != '"' && byte != '\\') [[likely]]
      continue;
    target.append(text, done, at - done);
    done = at + 1;
    if (byte == '\n') {
      target += "\\n";
    } else if (byte >= 0x20) {
      target.push_back('\\');
      target.push_back(static_cast<char>(byte));
    } else {
      target += "\\u00";
      target.push_back(kHex[byte >> 4]);
      target.push_back(kHex[byte & 15]);
    }
  }
  target.append(text, done);
  target.push_back('"');
}

bool is_deeper_than(std::string_view json, std::size_t limit) {
  std::size_t depth = 0;
  bool is_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (is_string) {
      if (c == '\\') ++at;
      is_string = c != '"';
    } else if (c == '"') {
      is_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace api
