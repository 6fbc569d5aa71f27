// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/access.h"

#include <errno.h>

#include "preload/raw.h"

namespace preload {
namespace {

/// Kernels before 5.8, and seccomp filters that do not know faccessat2: only the real ids can be
/// asked. Where they differ from the effective ones, the answer is left to who executes the file.
int check_access_by_real_ids(const char* path) {
  const bool same_ids = raw_syscall(SYS_getuid) == raw_syscall(SYS_geteuid) &&
                        raw_syscall(SYS_getgid) == raw_syscall(SYS_getegid);
  if (!same_ids) return 0;
  return static_cast<int>(-raw_syscall(SYS_faccessat, AT_FDCWD, raw::word(path), 1));  // X_OK
}

}  // namespace

int check_access(const char* path) {
  struct stat status = {};
  if (const long result = raw::stat(path, &status); result < 0) return static_cast<int>(-result);
  if (!S_ISREG(status.st_mode)) return EACCES;
  // For a regular file Linux's answer covers noexec mounts too (fs/open.c, do_faccessat).
  const long result = raw_syscall(SYS_faccessat2, AT_FDCWD, raw::word(path), 1, AT_EACCESS);
  if (result == -ENOSYS || result == -EPERM) return check_access_by_real_ids(path);
  return static_cast<int>(-result);
}

}  // namespace preload
