// What has no counterpart without the interposer.
#include <dlfcn.h>

#include "cases.h"

static char stub[PATH_MAX];

static void body_execve(void) { execve(stub, ARGV("given", "1"), ARGV("A=1")); }
static void body_execvp(void) { execvp(stub, ARGV("given", "2")); }
static void body_execveat(void) { execveat(AT_FDCWD, stub, ARGV("given", "3"), ARGV("A=3"), 0); }

// An exec of the stub itself is not wrapped in another one.
static void c_stub_itself(void) {
  pid_t pid;
  strcpy(stub, getenv("LD_PRELOAD"));
  strcpy(strrchr(stub, '/'), "/airlock-stub");
  setenv("A", "2", 1);
  unsetenv("LD_PRELOAD");
  in_child("execve", body_execve);
  in_child("execvp", body_execvp);
  in_child("execveat", body_execveat);
  const int error = posix_spawn(&pid, stub, NULL, NULL, ARGV("given", "4"), ARGV("A=4"));
  if (error == 0) say_end("posix_spawn", pid);
  say_error("posix_spawn", error);
}

// Every way to exec once, for runs in which the stub is missing: nothing may run unrouted.
static void c_every_way(void) {
  pid_t pid = -1;
  setenv("PATH", "bin_good", 1);
  say_result("execve", execve("./report", ARGV("x"), environ));
  say_result("execvp", execvp("prog", ARGV("x")));
  say_result("execvp of text", execvp("./text", ARGV("x")));
  say_result("execveat", execveat(AT_FDCWD, "./report", ARGV("x"), environ, 0));
  say_result("fexecve", fexecve(open("report", O_RDONLY), ARGV("x"), environ));
  say_error("posix_spawn", posix_spawn(&pid, "./report", NULL, NULL, ARGV("x"), environ));
  say_error("posix_spawnp", posix_spawnp(&pid, "prog", NULL, NULL, ARGV("x"), environ));
  errno = 0;
  SAY("system %#x ", system("echo unrouted"));
  say_result("system", -1);
  SAY("shell there %d\n", system(NULL));
  say_result("popen", popen("echo unrouted", "r") == NULL ? -1 : 0);
  say_result("missing", execve("./missing", ARGV("x"), environ));
}

typedef int (*pidfd_spawn_function)(int*, const char*, void*, void*, char* const[], char* const[]);

// Found by name even where libc has none, and then ENOSYS.
static void c_pidfd_spawn(void) {
  static const char* const names[] = {"pidfd_spawn", "pidfd_spawnp"};
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  for (int i = 0; i < 2; ++i) {
    int pidfd = -1;
    pidfd_spawn_function function = (pidfd_spawn_function)dlsym(RTLD_DEFAULT, names[i]);
    const int expected = dlsym(libc, names[i]) != NULL ? 0 : ENOSYS;
    const int error = function(&pidfd, "/bin/true", NULL, NULL, ARGV("x"), environ);
    if (error == 0) {
      siginfo_t end;
      waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED);
    }
    SAY("%s as libc has it: %d\n", names[i], error == expected);
  }
}

static void c_dlerror(void) { SAY("dlerror: %s\n", dlerror() == NULL ? "none" : "left over"); }

static void c_proc_open(void) {
  FILE* (*function)(FILE*, const char*, const char*) =
      (FILE * (*)(FILE*, const char*, const char*)) dlsym(RTLD_DEFAULT, "_IO_proc_open");
  say_result("_IO_proc_open", function(stdout, "echo unrouted", "r") == NULL ? -1 : 0);
}

const struct Case protocol_cases[] = {
    {"stub_itself", "protocol", STUB_RUNS, c_stub_itself},
    {"every_way", "protocol", STUB_RUNS, c_every_way},
    {"pidfd_spawn", "protocol", STUB_RUNS, c_pidfd_spawn},
    {"dlerror", "protocol", STUB_DOES_NOT, c_dlerror},
    {"proc_open", "protocol", STUB_DOES_NOT, c_proc_open},
    {NULL, NULL, 0, NULL},
};
