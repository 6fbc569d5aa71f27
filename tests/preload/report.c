// The program that gets exec'ed: prints what it was given. REPORT in its environment asks for
// more: "exe", "fds", "signals", "session".
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static void print_bytes(const char* label, const char* bytes) {
  printf("%s", label);
  for (; *bytes != '\0'; ++bytes) {
    const unsigned char c = (unsigned char)*bytes;
    if (c >= ' ' && c < 127) {
      putchar(c);
    } else {
      printf("\\%03o", c);
    }
  }
  putchar('\n');
}

static void print_exe(void) {
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) perror("exe");
  print_bytes("exe=", path);
}

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

static void print_fds(void) {
  int fds[256];
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder) && count < 256) fds[count++] = fd;
  }
  qsort(fds, count, sizeof(fds[0]), compare);
  for (size_t i = 0; i < count; ++i) printf("fd=%d\n", fds[i]);
}

static void print_signals(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0) printf("%s", line);
  }
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--quiet") == 0) return 0;
  char cwd[4096] = "?";
  printf("argc=%d\n", argc);
  for (int i = 0; i < argc; ++i) print_bytes("argv=", argv[i]);
  for (int i = 0; environ[i] != NULL; ++i) print_bytes("env=", environ[i]);
  print_bytes("cwd=", getcwd(cwd, sizeof(cwd)) != NULL ? cwd : "(none)");
  const char* more = getenv("REPORT");
  if (more == NULL) return 0;
  if (strstr(more, "exe") != NULL) print_exe();
  if (strstr(more, "fds") != NULL) print_fds();
  if (strstr(more, "signals") != NULL) print_signals();
  if (strstr(more, "session") != NULL) {
    printf("leads group %d, session %d\n", getpgrp() == getpid(), getsid(0) == getpid());
  }
  return 0;
}
