#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace support {

/// A new folder, 0755, removed with everything in it. Below /tmp its path has 24 bytes.
class TempDir {
 public:
  explicit TempDir(const std::string& parent = "/tmp") : path_(parent + "/airlock-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
    ::chmod(path_.c_str(), 0755);
  }
  ~TempDir() { remove(); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  /// Removes it early, where this object will not live to do it.
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace support
