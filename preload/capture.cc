#include "preload/capture.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "preload/shell.h"

namespace preload {
namespace {

constexpr char kShell[] =
    "/bin/sh";  // argv[0] too: glibc's wordexp, unlike system, says it in full

/// This process's environment without IFS, which must not split words inside the command. The
/// strings are borrowed; nullptr if there is no memory.
char** environment_without_ifs() {
  size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  auto** copy = static_cast<char**>(malloc((count + 1) * sizeof(char*)));
  if (copy == nullptr) return nullptr;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], "IFS=", 4) != 0) copy[kept++] = environ[i];
  }
  copy[kept] = nullptr;
  return copy;
}

int spawn_with_output(int* pid, const char* command, const int (&ends)[2], Errors errors) {
  char** environment = environment_without_ifs();
  if (environment == nullptr) return ENOMEM;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (error == 0 && errors == Errors::hidden) {
    error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  if (error == 0) error = spawn_shell(pid, kShell, "-c", command, &actions, nullptr, environment);
  posix_spawn_file_actions_destroy(&actions);
  free(environment);
  return error;
}

void read_to_end(int fd, Text& output) {
  char buffer[1024];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    for (ssize_t i = 0; i < count; ++i) {
      if (buffer[i] != '\0') output.add(buffer[i]);
    }
  }
}

/// A command that failed may have failed because it is none: sh -n tells.
bool is_shell_syntax(const char* command) {
  int pid;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = spawn_shell(&pid, kShell, "-nc", command, &actions, nullptr, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error != 0 || wait_for(pid) == 0;
}

}  // namespace

Captured capture(const char* command, Errors errors, Text& output) {
  int ends[2];
  int pid;
  if (pipe2(ends, O_CLOEXEC) != 0) return Captured::not_started;
  const int error = spawn_with_output(&pid, command, ends, errors);
  close(ends[1]);
  int status = 0;
  if (error == 0) {
    read_to_end(ends[0], output);
    status = wait_for(pid);
  }
  close(ends[0]);
  if (error != 0 || output.failed()) return Captured::not_started;
  if (status == 0) return Captured::output;
  return is_shell_syntax(command) ? Captured::output : Captured::not_shell;
}

}  // namespace preload
