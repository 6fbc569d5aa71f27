#include "contexts/init/binfmt_cover.h"

#include <elf.h>

#include <cstddef>

namespace contexts::init {
namespace {

constexpr unsigned kMarkBits = 8 * sizeof(Mark);
constexpr std::size_t kHeader = wire::kMarkOffset + sizeof(Mark);

/// What a file's first bytes must be, where `mask` has ones.
struct Pattern {
  std::array<std::uint8_t, kHeader> magic{};
  std::array<std::uint8_t, kHeader> mask{};

  void require(std::size_t byte, unsigned bit, bool value) {
    const auto place = static_cast<std::uint8_t>(1u << bit);
    mask[byte] |= place;
    if (value) {
      magic[byte] |= place;
    } else {
      magic[byte] &= static_cast<std::uint8_t>(~place);
    }
  }
};

class Cover {
 public:
  Cover(const Mark& mark, const std::string& interpreter)
      : mark_(mark), interpreter_(interpreter) {}

  std::vector<std::string> entries() {
    Pattern pattern;
    for (std::size_t i = 0; i < SELFMAG; ++i) {
      for (unsigned bit = 0; bit < 8; ++bit)
        pattern.require(i, bit, (static_cast<unsigned char>(ELFMAG[i]) >> bit & 1) != 0);
    }
    for (unsigned index = 0; index < kMarkBits; ++index) {
      const auto byte = static_cast<std::size_t>(index / 8);
      const bool value = (mark_[byte] >> (index % 8) & 1) != 0;
      Pattern differs = pattern;
      differs.require(wire::kMarkOffset + byte, index % 8, !value);
      emit(differs);
      pattern.require(wire::kMarkOffset + byte, index % 8, value);
    }
    return std::move(lines_);
  }

 private:
  void emit(const Pattern& pattern) {
    // POF: argv[0] stays the caller's; the file comes opened, so that those named by a descriptor
    // work; the interpreter is opened now, once, whatever its path leads to later
    // (Documentation/admin-guide/binfmt-misc.rst).
    std::size_t size = kHeader;
    while (pattern.mask[size - 1] == 0) --size;
    lines_.push_back(":" + std::to_string(lines_.size()) + ":M:0:" + escaped(pattern.magic, size) +
                     ":" + escaped(pattern.mask, size) + ":" + interpreter_ + ":POF");
  }

  static std::string escaped(const std::array<std::uint8_t, kHeader>& bytes, std::size_t size) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
      text += {'\\', 'x', kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
    }
    return text;
  }

  const Mark& mark_;
  const std::string& interpreter_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> binfmt_entries(const Mark& mark, const std::string& interpreter) {
  return Cover(mark, interpreter).entries();
}

}  // namespace contexts::init
