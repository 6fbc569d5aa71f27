// Each exec function once with everything that must arrive unchanged.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cases.h"

#define ODD_ARGV ARGV("not the path", "a b", "", "quote'\"", "\xff\xfe", "line\nbreak")
#define ODD_ENV ARGV("A=1", "A=2", "no equals sign", "=", "\xc3\x28=\x80", "PATH=/nowhere", "LAST=")

static void c_execve(void) { say_result("execve", execve("./report", ODD_ARGV, ODD_ENV)); }
static void c_execv(void) { say_result("execv", execv("./report", ODD_ARGV)); }
static void c_execvp(void) { say_result("execvp", execvp("./report", ODD_ARGV)); }
static void c_execvpe(void) { say_result("execvpe", execvpe("./report", ODD_ARGV, ODD_ENV)); }

static void c_execl(void) {
  say_result("execl", execl("./report", "-name", "1", "2", "3", "4", "5", "6", "7", "8", NULL));
}

static void c_execlp(void) {
  say_result("execlp", execlp("./report", "-name", "1", "2", "3", "4", "5", "6", "7", "8", NULL));
}

static void c_execle(void) {
  say_result("execle",
             execle("./report", "-name", "1", "2", "3", "4", "5", "6", "7", "8", NULL, ODD_ENV));
}

static void c_syscall_execve(void) {
  say_result("syscall", (int)syscall(SYS_execve, "./report", ODD_ARGV, ODD_ENV));
}

static void c_syscall_execveat(void) {
  say_result("syscall", (int)syscall(SYS_execveat, AT_FDCWD, "./report", ODD_ARGV, ODD_ENV, 0));
}

static void c_execveat(void) {
  say_result("execveat", execveat(AT_FDCWD, "./report", ODD_ARGV, ODD_ENV, 0));
}

static void c_argc_0(void) { say_result("execve", execve("./report", (char*[]){NULL}, ODD_ENV)); }
static void c_argv_null(void) { say_result("execve", execve("./report", NULL, ODD_ENV)); }
static void c_envp_null(void) { say_result("execve", execve("./report", ODD_ARGV, NULL)); }
static void c_both_null(void) { say_result("execve", execve("./report", NULL, NULL)); }
static void c_environ_null(void) {
  environ = NULL;
  say_result("execv", execv("./report", ODD_ARGV));
}

static void c_environ_null_search(void) {
  environ = NULL;
  say_result("execvp", execvp("true", ARGV("true")));
}

static void c_script(void) {
  say_result("execve", execve("./script", ARGV("lost", "a b", ""), environ));
}

static void c_from_thread_body(void) {
  say_result("execve", execve("./report", ODD_ARGV, ODD_ENV));
}

static void* thread_body(void* unused) {
  (void)unused;
  c_from_thread_body();
  return NULL;
}

static void c_from_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, thread_body, NULL);
  pthread_join(thread, NULL);
}

static void c_vfork(void) {
  errno = 0;
  const pid_t pid = vfork();
  if (pid == 0) {
    execve("./report", ODD_ARGV, ODD_ENV);
    _exit(99);
  }
  const int error = errno;
  say_end("vfork", pid);
  SAY("errno after vfork and exec: %d\n", error);
}

static void c_many_words(void) {
  say_result("execve", execve("./report", many_words("many", 5000), environ));
}

static void c_signal_state(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGPIPE, SIG_IGN);
  dup2(1, 77);
  setsid();
  setenv("REPORT", "signals fds session exe", 1);
  say_result("execv", execv("./report", ARGV("r")));
}

// All six arguments, a failing call, and errno kept by one that succeeds.
static void c_syscall_others(void) {
  errno = 1234;
  SAY("pid %d\n", syscall(SYS_getpid) == getpid());
  const long page =
      syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
  SAY("mapped %d, errno %d\n", page != -1 && *(char*)page == 0, errno);
  say_result("close", (int)syscall(SYS_close, -1));
  const int fd = open("script", O_RDONLY);
  errno = 0;
  SAY("mmap at a page offset: %d ",
      syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_PRIVATE, (long)fd, 4096L) != -1);
  SAY("and at an odd one: %ld ",
      syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_PRIVATE, (long)fd, 1L));
  say_result("so", -1);
}

const struct Case exec_cases[] = {
    {"execve", "exec", STUB_RUNS, c_execve},
    {"execv", "exec", STUB_RUNS, c_execv},
    {"execvp", "exec", STUB_RUNS, c_execvp},
    {"execvpe", "exec", STUB_RUNS, c_execvpe},
    {"execl", "exec", STUB_RUNS, c_execl},
    {"execlp", "exec", STUB_RUNS, c_execlp},
    {"execle", "exec", STUB_RUNS, c_execle},
    {"execveat", "exec", STUB_RUNS, c_execveat},
    {"syscall_execve", "exec", STUB_RUNS, c_syscall_execve},
    {"syscall_execveat", "exec", STUB_RUNS, c_syscall_execveat},
    {"syscall_others", "exec", STUB_DOES_NOT, c_syscall_others},
    {"argc_0", "exec", STUB_RUNS, c_argc_0},
    {"argv_null", "exec", STUB_RUNS, c_argv_null},
    {"envp_null", "exec", STUB_RUNS, c_envp_null},
    {"argv_and_envp_null", "exec", STUB_RUNS, c_both_null},
    {"environ_null", "exec", STUB_RUNS, c_environ_null},
    {"environ_null_search", "exec", STUB_RUNS, c_environ_null_search},
    {"script", "exec", STUB_RUNS, c_script},
    {"from_thread", "exec", STUB_RUNS, c_from_thread},
    {"vfork", "exec", STUB_RUNS, c_vfork},
    {"many_words", "exec", STUB_RUNS, c_many_words},
    {"signal_state", "exec", STUB_RUNS, c_signal_state},
    {NULL, NULL, 0, NULL},
};
