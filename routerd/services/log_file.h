#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "routerd/services/spec.h"

namespace routerd::services {

/// A file that grows to a size and is then renamed to PATH.1, PATH.1 to PATH.2 and so on, the
/// oldest removed. What the disk does not take is dropped and counted: a full disk stops no
/// service.
class LogFile {
 public:
  /// Nothing is opened before the first append().
  LogFile(std::string path, const LogLimits& limits) : path_(std::move(path)), limits_(limits) {}

  void append(std::string_view bytes);
  /// The last `limit` bytes of this and the previous file, from the start of a line on.
  std::string tail(std::size_t limit) const;

  const std::string& path() const { return path_; }
  /// Bytes that were not written, and why the last of them was not.
  std::uint64_t dropped() const { return dropped_; }
  const std::string& last_error() const { return last_error_; }

 private:
  base::Result<void> open();
  std::string_view fitting(std::string_view bytes) const;
  void write(std::string_view bytes);
  void rotate();
  void drop(std::size_t bytes, const std::string& why);

  std::string path_;
  LogLimits limits_;
  base::UniqueFd file_;
  std::uint64_t size_ = 0;
  std::uint64_t dropped_ = 0;
  std::string last_error_;
};

}  // namespace routerd::services
