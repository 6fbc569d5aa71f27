// execve and its family, routed. Every function returns only if the exec failed, with the errno
// value; `errno` itself is left alone. Async-signal-safe, below 6 KiB of stack.
#pragma once

namespace preload {

/// execve(2). A `path` that is the stub's own passes through untouched.
int exec_path(const char* path, char* const argv[], char* const envp[]);

/// execvpe(3): PATH search, and /bin/sh for files the kernel does not know how to run.
int exec_search(const char* name, char* const argv[], char* const envp[]);

/// execveat(2). Returns 0 only for AT_EXECVE_CHECK.
int exec_at(int dirfd, const char* path, char* const argv[], char* const envp[], int flags);

/// fexecve(3).
int exec_fd(int fd, char* const argv[], char* const envp[]);

}  // namespace preload
