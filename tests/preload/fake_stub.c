// Stands in for airlock-stub, so that the interposer is tested without a daemon. Static, so that
// LD_PRELOAD does not reach it. Beside itself it looks for, and leaves, files:
//   ran     one line per run: the proof that a program was routed
//   print   if it is there, the stub prints what it was given instead of running TARGET
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static char folder[PATH_MAX];

static const char* beside(const char* name) {
  static char path[PATH_MAX + 16];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

static void record(const char* target) {
  const int fd = open(beside("ran"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  dprintf(fd, "%s\n", target);
  close(fd);
}

static int print(char** argv) {
  for (int i = 0; argv[i] != NULL; ++i) printf("argv[%d]=%s\n", i, argv[i]);
  for (int i = 0; environ[i] != NULL; ++i) printf("env=%s\n", environ[i]);
  return 0;
}

int main(int argc, char** argv) {
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
  if (length <= 0) return 125;
  *strrchr(folder, '/') = '\0';
  record(argc > 2 ? argv[2] : "(nothing)");
  if (access(beside("print"), F_OK) == 0) return print(argv);
  if (argc < 3 || strcmp(argv[0], "airlock-stub") != 0 || strcmp(argv[1], "exec1") != 0) {
    return 125;
  }
  execve(argv[2], argv + 3, environ);
  const int error = errno;
  dprintf(2, "fake stub: %s: %s\n", argv[2], strerror(error));
  return error == ENOENT ? 127 : 126;
}
