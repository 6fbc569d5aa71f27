// A growing byte string for wordexp(3), the one place where strings are built. Uses malloc.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace preload {

class Text {
 public:
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { free(bytes_); }

  /// After a failed allocation every add is dropped and failed() stays true.
  void add(const char* bytes, size_t count) {
    if (!reserve(count) || bytes_ == nullptr) return;
    memcpy(bytes_ + size_, bytes, count);
    size_ += count;
    bytes_[size_] = '\0';
  }
  void add(char byte) { add(&byte, 1); }
  void add(const char* text) { add(text, strlen(text)); }

  void drop_last() {
    if (bytes_ != nullptr && size_ > 0) bytes_[--size_] = '\0';
  }
  void clear() { size_ = 0; }

  bool failed() const { return failed_; }
  size_t size() const { return size_; }
  /// Terminated; "" while empty.
  const char* c_str() const { return size_ > 0 ? bytes_ : ""; }
  char last() const { return size_ > 0 ? bytes_[size_ - 1] : '\0'; }

 private:
  bool reserve(size_t more) {
    if (!failed_ && size_ + more + 1 > capacity_) {
      const size_t capacity = 2 * capacity_ + more + 64;
      char* bytes = static_cast<char*>(realloc(bytes_, capacity));
      failed_ = bytes == nullptr;
      if (!failed_) bytes_ = bytes;
      if (!failed_) capacity_ = capacity;
    }
    return !failed_;
  }

  char* bytes_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool failed_ = false;
};

}  // namespace preload
