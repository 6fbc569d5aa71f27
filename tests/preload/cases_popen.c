// popen(3) and pclose(3).
#include <dlfcn.h>
#include <pthread.h>

#include "cases.h"

static void drain(const char* what, FILE* file) {
  char line[256];
  if (file == NULL) {
    say_result(what, -1);
    return;
  }
  while (fgets(line, sizeof(line), file) != NULL) SAY("%s: %s", what, line);
  const int status = pclose(file);
  SAY("%s: status %#x\n", what, status);
}

static void c_read(void) {
  errno = 0;
  drain("read", popen("echo \"$0\" one; echo two; exit 3", "r"));
  drain("killed", popen("kill -9 $$", "r"));
  drain("stderr", popen("echo gone >&2; exit 0", "r"));
  drain("missing", popen("exec /nowhere/at/all 2>&1 >/dev/null | wc -l", "r"));
  FILE* (*alias)(const char*, const char*) =
      (FILE * (*)(const char*, const char*)) dlsym(RTLD_DEFAULT, "_IO_popen");
  drain("alias", alias("echo alias", "r"));
  SAY("errno %d\n", errno);
}

static void c_write(void) {
  FILE* file = popen("cat; exit 4", "w");
  fputs("written by the parent\n", file);
  SAY("status %#x\n", pclose(file));
  file = popen("exec <&-; exit 0", "w");
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 100000; ++i) fputs("nobody reads this\n", file);
  SAY("broken pipe: %d\n", pclose(file));
}

static void c_modes(void) {
  static const char* const modes[] = {"r", "w", "re", "er", "we", "ew", "ree", "rr",
                                      "",  "e", "rw", "x",  "r+", "rb", "R"};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); ++i) {
    errno = 0;
    FILE* file = popen("true", modes[i]);
    if (file == NULL) {
      say_result(modes[i], -1);
      continue;
    }
    SAY("%s: close-on-exec %d ", modes[i], (fcntl(fileno(file), F_GETFD) & FD_CLOEXEC) != 0);
    SAY("direction %d, ", fcntl(fileno(file), F_GETFL) & O_ACCMODE);
    SAY("status %d\n", pclose(file));
  }
}

// A child that held an older stream's pipe would keep that stream's reader waiting for ever.
static void c_several(void) {
  FILE* first = popen("cat", "w");
  FILE* second = popen("cat", "w");
  fputs("first\n", first);
  SAY("first: %d\n", pclose(first));
  FILE* third = popen("cat; REPORT=fds ./report", "w");
  fputs("third\n", third);
  SAY("third: %d\n", pclose(third));
  fputs("second\n", second);
  SAY("second: %d\n", pclose(second));
}

static void c_without_stdio(void) {
  const int out = dup(1);
  close(0);
  FILE* file = popen("cat >&2", "w");
  dup2(out, 2);
  SAY("parent's end is 0 or above 2: %d\n", fileno(file) == 0 || fileno(file) > 2);
  pclose(file);
  // The stream's own end is descriptor 1, which the next child needs for its output.
  SAY("stdin again: %d\n", open("/dev/null", O_RDONLY));
  close(1);
  file = popen("echo x; exit 6", "r");
  FILE* second = popen("echo y; exit 7", "r");
  char line[16] = "", second_line[16] = "";
  fgets(line, sizeof(line), file);
  fgets(second_line, sizeof(second_line), second);
  const int own_end = fileno(file);
  const int second_status = pclose(second);
  const int status = pclose(file);
  dup2(out, 1);
  SAY("own end %d, ", own_end);
  SAY("got %sstatus %#x, then %sstatus %#x\n", line, status, second_line, second_status);
}

static void c_foreign(void) {
  FILE* file = fopen("script", "r");
  SAY("pclose of fopen: %d\n", pclose(file));
  // Ended by fclose: its descriptor's number goes to another file, which the next child keeps.
  file = popen("true", "re");
  const int fd = fileno(file);
  fclose(file);
  dup2(open("script", O_RDONLY), fd);
  drain("inherited", popen("REPORT=fds ./report | grep -c fd=", "re"));
}

static void* many_streams(void* unused) {
  (void)unused;
  long wrong = 0;
  for (int i = 0; i < 10; ++i) {
    char line[16] = "";
    FILE* file = popen("echo x; exit 9", "r");
    if (fgets(line, sizeof(line), file) == NULL || strcmp(line, "x\n") != 0) ++wrong;
    if (pclose(file) != 9 << 8) ++wrong;
  }
  return (void*)wrong;
}

static void c_threads(void) {
  pthread_t threads[8];
  long wrong = 0;
  for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, many_streams, NULL);
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    wrong += (long)result;
  }
  SAY("wrong: %ld\n", wrong);
}

static void c_failures(void) {
  errno = 0;
  FILE* file = popen(repeat('x', 200000), "r");
  SAY("too long: %d\n", file == NULL);
  SAY("no child left %d\n", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  SAY("lowest free fd %d\n", dup(0));
}

const struct Case popen_cases[] = {
    {"popen_read", "shell", STUB_RUNS, c_read},
    {"popen_write", "shell", STUB_RUNS, c_write},
    {"popen_modes", "shell", STUB_RUNS, c_modes},
    {"popen_several", "shell", STUB_RUNS, c_several},
    {"popen_without_stdio", "shell", STUB_RUNS, c_without_stdio},
    {"popen_foreign", "shell", STUB_RUNS, c_foreign},
    {"popen_threads", "shell", STUB_RUNS, c_threads},
    {"popen_failures", "shell", STUB_DOES_NOT, c_failures},
    {NULL, NULL, 0, NULL},
};
