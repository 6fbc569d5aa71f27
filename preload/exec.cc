// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/exec.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "preload/argv_block.h"
#include "preload/check.h"
#include "preload/raw.h"
#include "preload/resolve.h"
#include "preload/self.h"
#include "preload/target.h"

namespace preload {
namespace {

constexpr char kShell[] = "/bin/sh";

/// Linux 6.14: only answers whether the file could be executed.
constexpr int kExecveCheck = 0x10000;  // AT_EXECVE_CHECK, linux/fcntl.h

/// Execs the stub for `target`, and closes what the target kept open when that fails.
int exec_target(const Target& target, char* const argv[], char* const envp[], Scratch& scratch) {
  static char* const no_environment[] = {nullptr};
  int error = EACCES;
  if (const char* stub = stub_path(); stub != nullptr) {
    ArgvBlock block;
    error = block.build(target, argv, scratch);
    if (error == 0) {
      block.leave_to_kernel();
      const long result = raw::execve(stub, block.words(), envp != nullptr ? envp : no_environment);
      error = blame_stub(static_cast<int>(-result));
    }
  }
  if (target.kept_fd >= 0) raw::close(target.kept_fd);
  return error;
}

/// Turns a target that gave `error` into the shell that reads it, if that is what execvp does.
int use_shell(int error, Target& target) {
  if (error != ENOEXEC) return error;
  target.script = target.path;
  target.path = kShell;
  return check_program(kShell);
}

/// A name with a slash: no search.
int exec_named(const char* path, char* const argv[], char* const envp[]) {
  Scratch scratch;
  Target target;
  const int checked = check_program(path);
  if (checked != 0 && checked != ENOEXEC) return checked;
  if (const int error = resolve_path(path, scratch, target)) return error;
  if (const int error = use_shell(checked, target)) {
    if (target.kept_fd >= 0) raw::close(target.kept_fd);
    return error;
  }
  return exec_target(target, argv, envp, scratch);
}

int open_file_error(int dirfd, const char* path, int flags, mode_t& mode) {
  struct stat status = {};
  const int known = flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
  const long result = raw::stat_at(dirfd, path, &status, known);
  // In the kernel's order: the string is fetched before the flags are looked at.
  if (path == nullptr || result == -EFAULT) return EFAULT;
  if (path[0] == '\0' && (flags & AT_EMPTY_PATH) == 0) return ENOENT;
  if (flags != known) return EINVAL;
  if (result < 0) return static_cast<int>(-result);
  mode = status.st_mode;
  return S_ISLNK(mode) ? ELOOP : 0;
}

}  // namespace

int exec_path(const char* path, char* const argv[], char* const envp[]) {
  // Nothing reads `path` before the kernel has: it may be a bad pointer.
  if (const int error = check_program(path)) return error;
  if (is_stub(path)) return static_cast<int>(-raw::execve(path, argv, envp));
  Scratch scratch;
  Target target;
  if (const int error = resolve_path(path, scratch, target)) return error;
  return exec_target(target, argv, envp, scratch);
}

int exec_search(const char* name, char* const argv[], char* const envp[]) {
  if (name[0] == '\0') return ENOENT;
  if (strchr(name, '/') != nullptr) {
    return is_stub(name) ? exec_path(name, argv, envp) : exec_named(name, argv, envp);
  }

  Scratch scratch;
  auto& candidate = reinterpret_cast<char(&)[PATH_MAX]>(scratch.bytes);
  PathSearch search = {.rest = search_path()};
  int error = ENOENT;
  bool denied = false;
  for (;;) {
    const Candidate next = next_candidate(search, name, candidate);
    if (next == Candidate::too_long) return ENAMETOOLONG;
    if (next == Candidate::none_left) return denied ? EACCES : error;
    Target target = {.path = candidate};
    error = use_shell(check_program(candidate), target);
    if (error == 0) return exec_target(target, argv, envp, scratch);
    if (!search_goes_on(error)) return error;
    denied = denied || error == EACCES;
  }
}

int exec_at(int dirfd, const char* path, char* const argv[], char* const envp[], int flags) {
  if ((flags & kExecveCheck) != 0) {
    return static_cast<int>(-raw::execveat(dirfd, path, argv, envp, flags));
  }
  mode_t mode = 0;
  if (const int error = open_file_error(dirfd, path, flags, mode)) return error;
  if (path[0] == '/' || (dirfd == AT_FDCWD && path[0] != '\0')) return exec_path(path, argv, envp);
  if (!S_ISREG(mode)) return EACCES;

  Scratch scratch;
  Target target;
  const char* below = path[0] != '\0' ? path : nullptr;
  if (const int error = write_fd_path(dirfd, below, scratch)) return error;
  const CheckOptions options = {.hidden_from_interpreter = is_close_on_exec(dirfd)};
  if (const int error = check_program(scratch.bytes, options)) return error;
  const int error = below != nullptr ? resolve_below(dirfd, below, scratch, target)
                                     : resolve_fd(dirfd, scratch, target);
  return error != 0 ? error : exec_target(target, argv, envp, scratch);
}

int exec_fd(int fd, char* const argv[], char* const envp[]) {
  // glibc's own check, though the kernel would take nullptr as empty.
  if (fd < 0 || argv == nullptr || envp == nullptr) return EINVAL;
  return exec_at(fd, "", argv, envp, AT_EMPTY_PATH);
}

}  // namespace preload
