// May this file be executed? The part of the answer that does not look into the file.
#pragma once

namespace preload {

/// 0 if execve(2) would open `path`: a regular file this process may execute, not on a noexec
/// mount. Else the errno execve would give (ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EACCES, EFAULT).
/// Async-signal-safe; a bad pointer is found out by the kernel.
int check_access(const char* path);

}  // namespace preload
