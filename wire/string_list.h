#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wire {

/// argv or env as bytes: each string with its NUL, one after the other. Holds any bytes but NUL,
/// empty strings, duplicates and entries without '='. Cheap to encode, and execve(2) can point
/// straight into it.
class StringList {
 public:
  StringList() = default;
  StringList(std::initializer_list<std::string_view> strings) {
    for (const auto string : strings) add(string);
  }

  /// `string` must not contain NUL.
  void add(std::string_view string) {
    bytes_.append(string);
    bytes_.push_back('\0');
    ++count_;
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

  std::uint32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::string& bytes() const { return bytes_; }

  /// Takes encoded bytes; false if they are not `count` NUL-terminated strings.
  bool assign(std::string bytes, std::uint32_t count) {
    std::size_t terminators = 0;
    for (const char byte : bytes) terminators += byte == '\0';
    if (terminators != count || (!bytes.empty() && bytes.back() != '\0')) return false;
    bytes_ = std::move(bytes);
    count_ = count;
    return true;
  }

  std::vector<std::string_view> views() const {
    std::vector<std::string_view> result;
    result.reserve(count_);
    for (std::size_t at = 0; at < bytes_.size();) {
      const std::string_view string(bytes_.data() + at);
      result.push_back(string);
      at += string.size() + 1;
    }
    return result;
  }

  std::vector<std::string> strings() const {
    const auto all = views();
    return {all.begin(), all.end()};
  }

  /// The array execve(2) takes: pointers into this object, NULL last. Valid while it lives
  /// unchanged.
  std::vector<char*> pointers() {
    std::vector<char*> result;
    result.reserve(count_ + 1);
    for (std::size_t at = 0; at < bytes_.size();) {
      result.push_back(bytes_.data() + at);
      at += std::string_view(bytes_.data() + at).size() + 1;
    }
    result.push_back(nullptr);
    return result;
  }

  bool operator==(const StringList&) const = default;

 private:
  std::string bytes_;
  std::uint32_t count_ = 0;
};

}  // namespace wire
