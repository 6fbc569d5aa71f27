// The exported functions. Each is a few lines: errno and argument forms here, everything else in
// exec.h and spawn.h. system, popen and wordexp are in shell.cc, popen.cc and words.cc.
//
// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "preload/exec.h"
#include "preload/spawn.h"

namespace preload {
namespace {

/// -1 with errno set, as the exec functions return it; 0 stays 0.
int failed(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

/// Words of an execl call up to its nullptr. `list` is left where it was.
size_t count_words(const char* first, va_list list) {
  if (first == nullptr) return 0;
  va_list walk;
  va_copy(walk, list);
  size_t count = 1;
  while (va_arg(walk, const char*) != nullptr) ++count;
  va_end(walk);
  return count;
}

/// Copies the words and their nullptr to `argv`; returns what follows them: execle's environment.
char* const* collect_words(char** argv, const char* first, va_list list, bool has_environment) {
  va_list walk;
  va_copy(walk, list);
  for (*argv = const_cast<char*>(first); *argv != nullptr;) *++argv = va_arg(walk, char*);
  char* const* environment = has_environment ? va_arg(walk, char* const*) : environ;
  va_end(walk);
  return environment;
}

}  // namespace
}  // namespace preload

using preload::failed;

// On the caller's stack, as in glibc: the words lay there already.
#define AIRLOCK_STACK_WORDS(first, list) \
  static_cast<char**>(__builtin_alloca((preload::count_words((first), (list)) + 1) * sizeof(char*)))

#pragma GCC visibility push(default)
extern "C" {

int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  return failed(preload::exec_path(path, argv, envp));
}

int execv(const char* path, char* const argv[]) noexcept {
  return failed(preload::exec_path(path, argv, environ));
}

int execvp(const char* file, char* const argv[]) noexcept {
  return failed(preload::exec_search(file, argv, environ));
}

int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  return failed(preload::exec_search(file, argv, envp));
}

int execl(const char* path, const char* arg, ...) noexcept {
  va_list list;
  va_start(list, arg);
  char** argv = AIRLOCK_STACK_WORDS(arg, list);
  char* const* envp = preload::collect_words(argv, arg, list, false);
  va_end(list);
  return failed(preload::exec_path(path, argv, envp));
}

int execlp(const char* file, const char* arg, ...) noexcept {
  va_list list;
  va_start(list, arg);
  char** argv = AIRLOCK_STACK_WORDS(arg, list);
  char* const* envp = preload::collect_words(argv, arg, list, false);
  va_end(list);
  return failed(preload::exec_search(file, argv, envp));
}

int execle(const char* path, const char* arg, ...) noexcept {
  va_list list;
  va_start(list, arg);
  char** argv = AIRLOCK_STACK_WORDS(arg, list);
  char* const* envp = preload::collect_words(argv, arg, list, true);
  va_end(list);
  return failed(preload::exec_path(path, argv, envp));
}

int execveat(int dirfd, const char* path, char* const argv[], char* const envp[],
             int flags) noexcept {
  return failed(preload::exec_at(dirfd, path, argv, envp, flags));
}

int fexecve(int fd, char* const argv[], char* const envp[]) noexcept {
  return failed(preload::exec_fd(fd, argv, envp));
}

// syscall(3) jumps here with its arguments where they were (arch.cc).
[[gnu::visibility("hidden"), gnu::used]] long airlock_syscall_execve(long, const char* path,
                                                                     char* const argv[],
                                                                     char* const envp[]) {
  return failed(preload::exec_path(path, argv, envp));
}

[[gnu::visibility("hidden"), gnu::used]] long airlock_syscall_execveat(
    long, int dirfd, const char* path, char* const argv[], char* const envp[], int flags) {
  return failed(preload::exec_at(dirfd, path, argv, envp, flags));
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  return preload::spawn({preload::real().posix_spawn, pid, path, preload::Lookup::as_given, actions,
                         attributes, argv, envp});
}

int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  return preload::spawn({preload::real().posix_spawn, pid, file, preload::Lookup::in_path, actions,
                         attributes, argv, envp});
}

// glibc 2.39 and later; elsewhere ENOSYS, which Rust's std takes as "use fork".
int pidfd_spawn(int* pidfd, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  return preload::spawn({preload::real().pidfd_spawn, pidfd, path, preload::Lookup::as_given,
                         actions, attributes, argv, envp});
}

int pidfd_spawnp(int* pidfd, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  return preload::spawn({preload::real().pidfd_spawn, pidfd, file, preload::Lookup::in_path,
                         actions, attributes, argv, envp});
}

int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions,
                                         const char* path) noexcept {
  if (preload::real().add_chdir == nullptr) return ENOSYS;
  const int error = preload::real().add_chdir(actions, path);
  if (error == 0) preload::remember_chdir(actions);
  return error;
}

int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t* actions, int fd) noexcept {
  if (preload::real().add_fchdir == nullptr) return ENOSYS;
  const int error = preload::real().add_fchdir(actions, fd);
  if (error == 0) preload::remember_chdir(actions);
  return error;
}
}
#pragma GCC visibility pop
