#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace base {

/// open(2) with O_CLOEXEC added. Blocking.
Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0);

/// The whole file, at most `limit` bytes (EFBIG beyond). Works on /proc files. Blocking.
Result<std::string> read_file(const std::string& path, std::size_t limit = 16 << 20);
Result<std::string> read_all(int fd, std::size_t limit = 16 << 20);

/// Writes every byte to a blocking descriptor; retries on EINTR.
Result<void> write_all(int fd, std::string_view bytes);

/// Creates or truncates `path` with `mode` and writes `bytes`.
Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode);

/// readlink(2) as a string of at most PATH_MAX bytes.
Result<std::string> read_link(const std::string& path);

/// A copy with FD_CLOEXEC, numbered 3 or higher.
Result<UniqueFd> duplicate(int fd);

/// Sets or clears O_NONBLOCK on the open file description: everybody who shares it sees it.
Result<void> set_nonblocking(int fd, bool on);

/// This process's open descriptors in ascending order. Sees O_PATH descriptors too, which poll(2)
/// reports as closed. Reads /proc/self/fd; falls back to fcntl(2) on each number where /proc is
/// missing.
std::vector<int> open_fds();

}  // namespace base
