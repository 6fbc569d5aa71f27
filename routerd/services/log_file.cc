#include "routerd/services/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace routerd::services {
namespace {

/// The last `limit` bytes of a file; what cannot be read is empty.
std::string end_of(const std::string& path, std::size_t limit) {
  auto file = base::open_file(path, O_RDONLY);
  struct stat info {};
  if (!file || ::fstat(file->borrow(), &info) != 0) return {};
  const auto size = static_cast<std::size_t>(info.st_size);
  const std::size_t start = size > limit ? size - limit : 0;
  ::lseek(file->borrow(), static_cast<off_t>(start), SEEK_SET);
  auto text = base::read_all(file->borrow(), limit + (1u << 20));
  return text ? *text : std::string{};
}

}  // namespace

base::Result<void> LogFile::open() {
  auto file = base::open_file(path_, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!file) return tl::unexpected<base::Error>(file.error());
  struct stat info {};
  if (::fstat(file->borrow(), &info) != 0) return base::os_error("fstat " + path_);
  size_ = static_cast<std::uint64_t>(info.st_size);
  file_ = std::move(*file);
  return {};
}

void LogFile::rotate() {
  for (unsigned number = limits_.keep; number > 0; --number) {
    const std::string older = path_ + "." + std::to_string(number);
    const std::string newer = number == 1 ? path_ : path_ + "." + std::to_string(number - 1);
    ::rename(newer.c_str(), older.c_str());
  }
  if (limits_.keep == 0) ::unlink(path_.c_str());
  file_.reset();
}

void LogFile::drop(std::size_t bytes, const std::string& why) {
  dropped_ += bytes;
  last_error_ = why;
}

/// What still fits the file, to the end of a line; empty: the next line does not. A line that is
/// larger than a file has one of its own.
std::string_view LogFile::fitting(std::string_view bytes) const {
  const std::uint64_t room = limits_.max_bytes - std::min(limits_.max_bytes, size_);
  if (bytes.size() <= room) return bytes;
  const auto last_end = bytes.substr(0, room).rfind('\n');
  if (last_end != std::string_view::npos) return bytes.substr(0, last_end + 1);
  if (size_ > 0) return {};
  const auto first_end = bytes.find('\n');
  return first_end == std::string_view::npos ? bytes : bytes.substr(0, first_end + 1);
}

void LogFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!file_) {
      if (auto opened = open(); !opened) return drop(bytes.size(), opened.error().message());
    }
    auto part = fitting(bytes);
    if (part.empty()) {
      rotate();
      if (auto opened = open(); !opened) return drop(bytes.size(), opened.error().message());
      part = size_ == 0 ? fitting(bytes) : bytes;  // it could not be moved away
    }
    bytes.remove_prefix(part.size());
    write(part);
  }
}

void LogFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.borrow(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return drop(bytes.size(), base::os_error("write " + path_).value().message());
    size_ += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string LogFile::tail(std::size_t limit) const {
  std::string text = end_of(path_, limit);
  if (text.size() < limit) text = end_of(path_ + ".1", limit - text.size()) + text;
  if (text.size() < limit) return text;
  const auto newline = text.find('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

}  // namespace routerd::services
