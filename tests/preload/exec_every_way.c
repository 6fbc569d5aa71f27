// Usage: exec_every_way CASE | --list | --report
#include "cases.h"

static const struct Case* const tables[] = {
    exec_cases,  path_cases,  fd_cases,   errno_cases,  spawn_cases,
    shell_cases, popen_cases, word_cases, stress_cases, protocol_cases,
};

void say_error(const char* what, int error) {
  const char* name = error == 0 ? "0" : strerrorname_np(error);
  SAY("%s: %s\n", what, name != NULL ? name : "?");
}

void say_result(const char* what, int result) { say_error(what, result < 0 ? errno : 0); }

void say_end(const char* what, pid_t pid) {
  int status;
  if (waitpid(pid, &status, 0) != pid) {
    say_result(what, -1);
  } else if (WIFSIGNALED(status)) {
    SAY("%s: killed by %d\n", what, WTERMSIG(status));
  } else {
    SAY("%s: exited %d\n", what, WEXITSTATUS(status));
  }
}

void in_child(const char* what, void (*body)(void)) {
  const pid_t pid = fork();
  if (pid == 0) {
    errno = 0;
    body();
    say_result(what, -1);
    _exit(99);
  }
  say_end(what, pid);
}

char* repeat(char byte, size_t length) {
  char* text = malloc(length + 1);
  memset(text, byte, length);
  text[length] = '\0';
  return text;
}

char** many_words(const char* name, int count) {
  char** argv = calloc((size_t)count + 2, sizeof(*argv));
  argv[0] = (char*)name;
  for (int i = 0; i < count; ++i) {
    argv[i + 1] = malloc(16);
    snprintf(argv[i + 1], 16, "%d", i);
  }
  return argv;
}

static void list(void) {
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); ++t) {
    for (const struct Case* c = tables[t]; c->name != NULL; ++c) {
      printf("%s %s %s\n", c->group, c->name, c->stub == STUB_RUNS ? "runs" : "not");
    }
  }
}

static int report_exe(char** argv) {
  char path[PATH_MAX] = "";
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) return 1;
  SAY("argv[0]=%s exe=%s\n", argv[0], path);
  return 0;
}

int main(int argc, char** argv) {
  const int errno_at_start = errno;
  if (argc != 2) return 64;
  if (strcmp(argv[1], "--report") == 0) return report_exe(argv);
  if (strcmp(argv[1], "--list") == 0) {
    list();
    return 0;
  }
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); ++t) {
    for (const struct Case* c = tables[t]; c->name != NULL; ++c) {
      if (strcmp(c->name, argv[1]) != 0) continue;
      SAY("errno at start: %d\n", errno_at_start);
      errno = 0;
      c->run();
      SAY("end of case\n");
      return 0;
    }
  }
  fprintf(stderr, "no such case: %s\n", argv[1]);
  return 64;
}
