// The entries as the kernel would match them (fs/binfmt_misc.c, search_binfmt_handler).

#include "contexts/init/binfmt_cover.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>

using contexts::init::binfmt_entries;
using contexts::init::Mark;

namespace {

constexpr Mark kMark = {0x10, 0x20, 0x03, 0xff, 0x00, 0x80, 0x01};

std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 3 < text.size(); i += 4) {
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16)));
  }
  return bytes;
}

bool matches(const std::string& entry, const std::string& file) {
  std::istringstream fields(entry.substr(1));
  std::string name, type, offset, magic, mask;
  std::getline(fields, name, ':'), std::getline(fields, type, ':');
  std::getline(fields, offset, ':'), std::getline(fields, magic, ':');
  std::getline(fields, mask, ':');
  REQUIRE(type == "M");
  REQUIRE(offset == "0");
  magic = unescaped(magic), mask = unescaped(mask);
  REQUIRE(magic.size() == mask.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (((file[i] ^ magic[i]) & mask[i]) != 0) return false;
  }
  return true;
}

bool is_routed(const std::vector<std::string>& entries, const std::string& file) {
  int found = 0;
  for (const auto& entry : entries) found += matches(entry, file);
  CHECK(found <= 1);  // a cover without overlaps
  return found != 0;
}

std::string elf(std::uint32_t entry, std::uint32_t sections, const Mark& mark = {}) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  std::memcpy(header.e_ident + wire::kMarkOffset, mark.data(), mark.size());
  header.e_entry = entry;
  header.e_shoff = sections;
  std::string file(256, '\0');
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace

TEST_CASE("every ELF file but those with the mark is covered", "[contexts]") {
  const auto entries = binfmt_entries(kMark, "/run/airlock/airlock-stub");
  CHECK(entries.size() == 56);
  CHECK(is_routed(entries, elf(0x401000, 0x5000)));
  CHECK_FALSE(is_routed(entries, elf(0x401000, 0x5000, kMark)));
  for (std::size_t bit = 0; bit < 56; ++bit) {
    Mark other = kMark;
    other[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    CHECK(is_routed(entries, elf(0x401000, 0x5000, other)));
  }
  CHECK_FALSE(is_routed(entries, std::string("#!/bin/sh\n") + std::string(246, '\0')));
}

TEST_CASE("an entry fits what the kernel takes", "[contexts]") {
  constexpr std::size_t kLongest = 1920;  // MAX_REGISTER_LENGTH, fs/binfmt_misc.c
  const std::string interpreter = "/" + std::string(100, 'x') + "/airlock-stub";
  for (const auto& entry : binfmt_entries(kMark, interpreter)) {
    CHECK(entry.size() <= kLongest);
    CHECK(entry.ends_with(":" + interpreter + ":POF"));
  }
}
