// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
//
// The system calls the interposer needs. All return >= 0 or a negative errno; `errno` itself is
// never touched, because a vfork child shares it with its parent.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>

#include "preload/arch.h"

namespace preload::raw {

inline long word(const void* pointer) { return reinterpret_cast<long>(pointer); }

inline long execve(const char* path, char* const argv[], char* const envp[]) {
  return raw_syscall(SYS_execve, word(path), word(argv), word(envp));
}

inline long execveat(int dirfd, const char* path, char* const argv[], char* const envp[],
                     int flags) {
  return raw_syscall(SYS_execveat, dirfd, word(path), word(argv), word(envp), flags);
}

// glibc's struct stat is the kernel's on the two 64-bit architectures.
inline long stat_at(int dirfd, const char* path, struct stat* status, int flags) {
  return raw_syscall(SYS_newfstatat, dirfd, word(path), word(status), flags);
}

inline long stat(const char* path, struct stat* status) {
  return stat_at(AT_FDCWD, path, status, 0);
}

inline long open_at(int dirfd, const char* path, int flags) {
  return raw_syscall(SYS_openat, dirfd, word(path), flags);
}

inline long open(const char* path, int flags) { return open_at(AT_FDCWD, path, flags); }

inline long close(int fd) { return raw_syscall(SYS_close, fd); }

inline long read(int fd, void* buffer, size_t size) {
  return raw_syscall(SYS_read, fd, word(buffer), static_cast<long>(size));
}

inline long pread(int fd, void* buffer, size_t size, long offset) {
  return raw_syscall(SYS_pread64, fd, word(buffer), static_cast<long>(size), offset);
}

inline long readlink(const char* path, char* buffer, size_t size) {
  return raw_syscall(SYS_readlinkat, AT_FDCWD, word(path), word(buffer), static_cast<long>(size));
}

inline long fcntl(int fd, int command, long argument = 0) {
  return raw_syscall(SYS_fcntl, fd, command, argument);
}

inline long getdents(int fd, void* buffer, size_t size) {
  return raw_syscall(SYS_getdents64, fd, word(buffer), static_cast<long>(size));
}

inline long getcwd(char* buffer, size_t size) {
  return raw_syscall(SYS_getcwd, word(buffer), static_cast<long>(size));
}

inline long map_memory(size_t size) {
  return raw_syscall(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

inline long unmap_memory(void* memory, size_t size) {
  return raw_syscall(SYS_munmap, word(memory), static_cast<long>(size));
}

/// Reads where the kernel writes 0 when this thread leaves its memory (set_tid_address(2)).
/// -EINVAL on kernels without CONFIG_CHECKPOINT_RESTORE.
inline long tid_address(int** address) {
  return raw_syscall(SYS_prctl, PR_GET_TID_ADDRESS, word(address));
}

inline long set_tid_address(int* address) {
  return raw_syscall(SYS_set_tid_address, word(address));
}

/// 0 if 8 bytes can be read at `pointer`, -EFAULT if not. Linux copies the signal set before it
/// looks at `how` (kernel/signal.c), so a wrong `how` makes rt_sigprocmask a pure probe.
inline long probe(const void* pointer) {
  const long result = raw_syscall(SYS_rt_sigprocmask, ~0L, word(pointer), 0, 8);
  return result == -EFAULT ? result : 0;
}

}  // namespace preload::raw
