// The errno of every exec that fails: none may reach the stub.
#include <sys/mman.h>

#include "cases.h"

static const char* const bad_paths[] = {
    "/nowhere/at/all",
    "missing",
    "",
    "folder",
    "denied",
    "fifo",
    "empty",
    "text",
    "elf4",
    "zeros",
    "elf_header",
    "elf_foreign",
    "bad_shebang",
    "shebang_dir",
    "shebang_denied",
    "shebang_missing_relative",
    "shebang_only",
    "shebang_blank",
    "shebang_long",
    "shebang_text",
    "shebang6",
    "script/x",
    "loop",
    "bad_loader",
    "/dev/null",
    "noloader_script",
};

#define FOR_EACH_BAD_PATH(call)                                           \
  for (size_t i = 0; i < sizeof(bad_paths) / sizeof(bad_paths[0]); ++i) { \
    const char* path = bad_paths[i];                                      \
    say_result(path, call);                                               \
  }

static void c_execve(void) { FOR_EACH_BAD_PATH(execve(path, ARGV("x"), environ)) }
static void c_execv(void) { FOR_EACH_BAD_PATH(execv(path, ARGV("x"))) }
static void c_execl(void) { FOR_EACH_BAD_PATH(execl(path, "x", NULL)) }
static void c_execveat(void) { FOR_EACH_BAD_PATH(execveat(AT_FDCWD, path, ARGV("x"), environ, 0)) }

static void c_execveat_below(void) {
  const int fd = open(".", O_RDONLY | O_DIRECTORY);
  FOR_EACH_BAD_PATH(execveat(fd, path, ARGV("x"), environ, 0))
}

static void c_posix_spawn(void) {
  for (size_t i = 0; i < sizeof(bad_paths) / sizeof(bad_paths[0]); ++i) {
    pid_t pid = -5;
    say_error(bad_paths[i], posix_spawn(&pid, bad_paths[i], NULL, NULL, ARGV("x"), environ));
  }
}

static void c_posix_spawnp(void) {
  setenv("PATH", ".", 1);
  for (size_t i = 0; i < sizeof(bad_paths) / sizeof(bad_paths[0]); ++i) {
    pid_t pid = -5;
    say_error(bad_paths[i], posix_spawnp(&pid, bad_paths[i], NULL, NULL, ARGV("x"), environ));
  }
}

// Those that execvp does not hand to /bin/sh.
static void c_execvp(void) {
  static const char* const paths[] = {"./missing", "./folder",   "./denied",     "./bad_shebang",
                                      "./loop",    "./script/x", "./bad_loader", ""};
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
    say_result(paths[i], execvp(paths[i], ARGV("x")));
  }
}

static void c_too_long(void) {
  say_result("path", execve(repeat('/', 4999), ARGV("x"), environ));
  say_result("path of components", execve(repeat('a', 4999), ARGV("x"), environ));
  say_result("component", execve(repeat('n', 256), ARGV("x"), environ));
  say_result("execvp path", execvp(repeat('/', 4999), ARGV("x")));
}

static void c_bad_pointers(void) {
  char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 4096, 4096);
  char** unterminated = (char**)page;
  for (int i = 0; i < 512; ++i) unterminated[i] = "word";
  char* wild[] = {"x", (char*)1, NULL};
  pid_t pid;
  say_result("path 1", execve((char*)1, ARGV("x"), environ));
  say_result("path NULL", execve(NULL, ARGV("x"), environ));
  say_result("argv 1", execve("./report", (char**)1, environ));
  say_result("argv without end", execve("./report", unterminated, environ));
  say_result("argv with a wild word", execve("./report", wild, environ));
  say_result("envp 1", execve("./report", ARGV("x"), (char**)1));
  say_result("execveat path 1", execveat(AT_FDCWD, (char*)1, ARGV("x"), environ, 0));
  say_result("execveat path NULL", execveat(AT_FDCWD, NULL, ARGV("x"), environ, AT_EMPTY_PATH));
  say_error("posix_spawn path 1", posix_spawn(&pid, (char*)1, NULL, NULL, ARGV("x"), environ));
}

static void c_too_big(void) {
  char* huge = repeat('h', 200000);
  char** many = calloc(40, sizeof(*many));
  char* large = repeat('l', 120000);
  pid_t pid;
  for (int i = 0; i < 39; ++i) many[i] = large;
  say_result("one word", execve("./report", ARGV("x", huge), environ));
  say_result("one variable", execve("./report", ARGV("x"), ARGV(huge)));
  say_result("many words", execve("./report", many, environ));
  say_result("execvp", execvp("./report", ARGV("x", huge)));
  say_error("posix_spawn", posix_spawn(&pid, "./report", NULL, NULL, ARGV("x", huge), environ));
  say_error("posix_spawnp", posix_spawnp(&pid, "./report", NULL, NULL, many, environ));
}

// A file one may execute but not read: nothing can be said beforehand, and it must run.
static void c_unreadable(void) {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) SAY("cannot drop root\n");
  SAY("readable: %d\n", access("unreadable", R_OK) == 0);
  say_result("denied", execve("denied", ARGV("x"), environ));
  say_result("locked", execve("locked/report", ARGV("x"), environ));
  say_result("unreadable", execve("./unreadable", ARGV("x"), environ));
}

static void run_shebang5(void) { execve("./shebang5", ARGV("x"), environ); }
static void run_relative(void) { execve("./shebang_relative", ARGV("x", "y"), environ); }
static void run_argument(void) { execve("./shebang_argument", ARGV("x", "y"), environ); }
static void run_unended(void) { execve("./shebang_unended", ARGV("x", "y"), environ); }

static void c_shebang_runs(void) {
  in_child("five scripts deep", run_shebang5);
  in_child("relative interpreter", run_relative);
  in_child("one argument", run_argument);
  in_child("no newline", run_unended);
}

static void run_random(void) { execve("./random", ARGV("x", "y"), environ); }

// "#!" lines put together at random, always the same ones: the kernel itself is the judge.
static void c_random_shebangs(void) {
  static const char* const pieces[] = {"#!", " ", "\t",    "\n",   "./report", "script", "/nowhere",
                                       "x",  "",  "%250s", "%60s", "./",       "-"};
  unsigned random = 1;
  for (int i = 0; i < 200; ++i) {
    char content[3000] = "#!";
    size_t length = 2;
    for (int n = 0; n < 6; ++n) {
      random = random * 1103515245 + 12345;
      const char* piece = pieces[(random >> 16) % (sizeof(pieces) / sizeof(pieces[0]))];
      if (*piece == '\0') content[length++] = '\0';
      length += (size_t)sprintf(content + length, piece, n % 2 ? "/y" : " ");
    }
    const int fd = open("random", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (write(fd, content, length) != (ssize_t)length) SAY("short write\n");
    close(fd);
    SAY("%d: %zu bytes ", i, length);
    in_child("random", run_random);
  }
}

const struct Case errno_cases[] = {
    {"errno_execve", "errno", STUB_DOES_NOT, c_execve},
    {"errno_execv", "errno", STUB_DOES_NOT, c_execv},
    {"errno_execl", "errno", STUB_DOES_NOT, c_execl},
    {"errno_execvp", "errno", STUB_DOES_NOT, c_execvp},
    {"errno_execveat", "errno", STUB_DOES_NOT, c_execveat},
    {"errno_execveat_below", "errno", STUB_DOES_NOT, c_execveat_below},
    {"errno_posix_spawn", "errno", STUB_DOES_NOT, c_posix_spawn},
    {"errno_posix_spawnp", "errno", STUB_DOES_NOT, c_posix_spawnp},
    {"errno_too_long", "errno", STUB_DOES_NOT, c_too_long},
    {"errno_bad_pointers", "errno", STUB_DOES_NOT, c_bad_pointers},
    {"errno_too_big", "errno", STUB_DOES_NOT, c_too_big},
    {"errno_unreadable", "errno", STUB_RUNS, c_unreadable},
    {"shebang_random", "errno", STUB_RUNS, c_random_shebangs},
    {"shebang_runs", "errno", STUB_RUNS, c_shebang_runs},
    {NULL, NULL, 0, NULL},
};
