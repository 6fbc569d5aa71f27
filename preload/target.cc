// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/target.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "preload/raw.h"

namespace preload {
namespace {

constexpr char kFdFolder[] = "/proc/self/fd/";

/// "/proc/self/fd/" and ten digits.
struct FdPath {
  char text[sizeof(kFdFolder) + 10];
};

FdPath fd_path(int fd) {
  FdPath path;
  memcpy(path.text, kFdFolder, sizeof(kFdFolder));
  char digits[10];
  int count = 0;
  for (auto rest = static_cast<unsigned>(fd); count == 0 || rest != 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  char* out = path.text + sizeof(kFdFolder) - 1;
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
  return path;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Puts the name of what is open at `fd` into the scratch buffer. False if there is none, or if it
/// does not fit. It may be out of date: compare files afterwards.
bool read_fd_link(int fd, Scratch& scratch) {
  const long length = raw::readlink(fd_path(fd).text, scratch.bytes, PATH_MAX);
  if (length <= 0 || length >= PATH_MAX || scratch.bytes[0] != '/') return false;
  scratch.bytes[length] = '\0';
  return true;
}

/// Skips `prefix` at the start of `path`, where a '/' of the prefix stands for any number of them.
/// nullptr if `path` does not begin so.
const char* skip_prefix(const char* path, const char* prefix) {
  for (; *prefix != '\0'; ++prefix, ++path) {
    if (*path != *prefix) return nullptr;
    if (*path != '/') continue;
    while (path[1] == '/') ++path;
  }
  return path;
}

/// Paths that lead through this process's own /proc entry, or another's.
bool leads_through_proc(const char* path) {
  return skip_prefix(path, "/proc/") != nullptr || skip_prefix(path, "/dev/fd/") != nullptr ||
         skip_prefix(path, "/dev/std") != nullptr;
}

int target_fd(int fd, Scratch& scratch, Target& target) {
  const FdPath path = fd_path(fd);
  memcpy(scratch.bytes, path.text, sizeof(path.text));
  target.path = scratch.bytes;
  return 0;
}

/// Makes the target an fd of its own that survives exec. Above 2: a closed stdin stays closed.
int keep_fd(int fd, Scratch& scratch, Target& target) {
  const long kept = raw::fcntl(fd, F_DUPFD, 3);
  if (kept < 0) return static_cast<int>(-kept);
  target.kept_fd = static_cast<int>(kept);
  return target_fd(target.kept_fd, scratch, target);
}

/// O_PATH opens what may only be executed, too.
int resolve_opened(int dirfd, const char* path, Scratch& scratch, Target& target) {
  const long fd = raw::open_at(dirfd, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return static_cast<int>(-fd);
  const int error = resolve_fd(static_cast<int>(fd), scratch, target);
  raw::close(static_cast<int>(fd));
  return error;
}

}  // namespace

bool is_close_on_exec(int fd) {
  const long flags = raw::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

int fd_named_by(const char* path) {
  static constexpr const char* kFolders[] = {kFdFolder, "/proc/thread-self/fd/", "/dev/fd/"};
  const char* digits = nullptr;
  for (const char* folder : kFolders) {
    if (digits == nullptr) digits = skip_prefix(path, folder);
  }
  if (digits == nullptr || *digits == '\0') return -1;
  long fd = 0;
  for (; *digits >= '0' && *digits <= '9' && fd <= INT_MAX; ++digits) fd = fd * 10 + *digits - '0';
  return *digits == '\0' && fd <= INT_MAX ? static_cast<int>(fd) : -1;
}

int write_fd_path(int fd, const char* path, Scratch& scratch) {
  char* out = scratch.bytes;
  const FdPath folder = fd_path(fd);
  const size_t length = strlen(folder.text);
  memcpy(out, folder.text, length + 1);
  if (path == nullptr) return 0;
  const size_t rest = strlen(path);
  if (length + 1 + rest >= PATH_MAX) return ENAMETOOLONG;
  out[length] = '/';
  memcpy(out + length + 1, path, rest + 1);
  return 0;
}

int resolve_fd(int fd, Scratch& scratch, Target& target) {
  struct stat opened = {};
  struct stat named = {};
  const long result = raw::stat_at(fd, "", &opened, AT_EMPTY_PATH);
  if (result < 0) return static_cast<int>(-result);
  if (read_fd_link(fd, scratch) && raw::stat(scratch.bytes, &named) == 0 &&
      same_file(opened, named)) {
    target.path = scratch.bytes;
    return 0;
  }
  return is_close_on_exec(fd) ? keep_fd(fd, scratch, target) : target_fd(fd, scratch, target);
}

int resolve_below(int dirfd, const char* path, Scratch& scratch, Target& target) {
  struct stat meant = {};
  struct stat named = {};
  const long result = raw::stat_at(dirfd, path, &meant, 0);
  if (result < 0) return static_cast<int>(-result);
  if (read_fd_link(dirfd, scratch)) {
    const size_t length = strlen(scratch.bytes);
    const size_t rest = strlen(path);
    if (length + 1 + rest < PATH_MAX) {
      scratch.bytes[length] = '/';
      memcpy(scratch.bytes + length + 1, path, rest + 1);
      target.path = scratch.bytes;
      if (raw::stat(scratch.bytes, &named) == 0 && same_file(meant, named)) return 0;
    }
  }
  return resolve_opened(dirfd, path, scratch, target);
}

int resolve_path(const char* path, Scratch& scratch, Target& target) {
  const int fd = fd_named_by(path);
  if (fd >= 0) return resolve_fd(fd, scratch, target);
  if (leads_through_proc(path)) return resolve_opened(AT_FDCWD, path, scratch, target);
  target.path = path;
  return 0;
}

}  // namespace preload
