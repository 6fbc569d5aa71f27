// Where a careless interposer breaks: little stack, shared memory, many threads.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "cases.h"

enum { kThreads = 64, kSmallStack = 16384 };

/// Pages this process has mapped.
static long mapped_pages(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) SAY("no statm\n");
  if (file != NULL) fclose(file);
  return pages;
}

/// vfork, exec `path`, and wait. The exit code, or -1.
static int vfork_exec(const char* path, char** argv) {
  int status = -1;
  const pid_t pid = vfork();
  if (pid == 0) {
    execve(path, argv, environ);
    _exit(99);
  }
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child runs in this process's memory: what it takes there and never gives back adds up.
static void c_vfork_memory(void) {
  char** argv = many_words("report", 5000);
  argv[1] = "--quiet";
  int failed = 0;
  for (int i = 0; i < 10; ++i) failed += vfork_exec("./report", argv) != 0;
  const long before = mapped_pages();
  for (int i = 0; i < 1000; ++i) failed += vfork_exec("./report", argv) != 0;
  SAY("failed %d, grew by %ld pages\n", failed, mapped_pages() - before);
}

static void* exec_with_little_stack(void* unused) {
  (void)unused;
  int status = -1;
  const pid_t pid = vfork();
  if (pid == 0) {
    setenv("PATH", "/nowhere:/nowhere/else:bin_good", 1);
    execvp("text_prog", ARGV("zero", "one"));
    _exit(99);
  }
  waitpid(pid, &status, 0);
  SAY("status %#x\n", status);
  pid_t spawned;
  int error = posix_spawnp(&spawned, "prog", NULL, NULL, ARGV("zero"), environ);
  say_end("posix_spawnp", spawned);
  say_error("posix_spawnp", error);
  error = posix_spawn(&spawned, "/proc/self/exe", NULL, NULL, ARGV("me", "--report"), environ);
  say_end("posix_spawn", spawned);
  say_error("posix_spawn", error);
  return NULL;
}

static void run_thread(void* (*body)(void*), size_t stack) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack);
  const int error = pthread_create(&thread, &attributes, body, NULL);
  if (error == 0) pthread_join(thread, NULL);
  say_error("thread", error);
}

static void c_small_stack(void) { run_thread(exec_with_little_stack, kSmallStack); }

static void* exec_that_fails(void* unused) {
  (void)unused;
  char** argv = many_words("x", 5000);
  argv[7] = repeat('h', 200000);
  say_result("execve", execve("./report", argv, environ));
  argv[7] = (char*)1;
  say_result("execve", execve("./report", argv, environ));
  const long before = mapped_pages();
  for (int i = 0; i < 200; ++i) execve("./report", argv, environ);
  SAY("grew by %ld pages\n", mapped_pages() - before);
  return NULL;
}

// pthread_join waits on the very word that a long argv lends to the kernel for the exec.
static void c_join_after_failure(void) {
  run_thread(exec_that_fails, 1 << 20);
  SAY("joined\n");
}

static pthread_barrier_t start;

static void* exec_often(void* argument) {
  char** argv = argument;
  long failed = 0;
  pthread_barrier_wait(&start);
  for (int i = 0; i < 5; ++i) failed += vfork_exec("./report", argv) != 0;
  return (void*)failed;
}

static long run_all(char** argv) {
  pthread_t threads[kThreads];
  long failed = 0;
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, exec_often, argv);
  for (int i = 0; i < kThreads; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    failed += (long)result;
  }
  return failed;
}

static void c_64_threads(void) {
  pthread_barrier_init(&start, NULL, kThreads);
  char** many = many_words("report", 2000);
  many[1] = "--quiet";
  SAY("failed: %ld\n", run_all(ARGV("report", "--quiet")));
  SAY("failed with 2000 words: %ld\n", run_all(many));
}

static void exec_in_handler(int number) {
  (void)number;
  execvp("prog", ARGV("zero", "from a handler"));
}

static void c_signal_handler(void) {
  setenv("PATH", "bin_denied:bin_good", 1);
  signal(SIGUSR1, exec_in_handler);
  raise(SIGUSR1);
}

const struct Case stress_cases[] = {
    {"vfork_memory", "stress", STUB_RUNS, c_vfork_memory},
    {"small_stack", "stress", STUB_RUNS, c_small_stack},
    {"join_after_failure", "stress", STUB_DOES_NOT, c_join_after_failure},
    {"threads", "stress", STUB_RUNS, c_64_threads},
    {"signal_handler", "stress", STUB_RUNS, c_signal_handler},
    {NULL, NULL, 0, NULL},
};
