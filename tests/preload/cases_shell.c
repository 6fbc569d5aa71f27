// system(3).
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "cases.h"

static void say_status(const char* what, int status) {
  SAY("%s: %#x, errno %d\n", what, status, errno);
  errno = 0;
}

static void c_statuses(void) {
  errno = 0;
  say_status("exit 0", system("exit 0"));
  say_status("exit 7", system("exit 7"));
  say_status("killed", system("kill -TERM $$"));
  say_status("not found", system("exec /nowhere/at/all 2>/dev/null"));
  say_status("empty", system(""));
  say_status("syntax", system("( 2>/dev/null") & 0xff00);
  say_status("output", system("echo \"$0\" 'a  b'; echo \"$#\""));
  say_status("quotes", system("printf '%s\\n' \"it's\" '\"' '\\' \"\xff\" | od -An -tx1"));
  say_status("shell there", system(NULL));
  int (*alias)(const char*) = (int (*)(const char*))dlsym(RTLD_DEFAULT, "system");
  say_status("by dlsym", alias("exit 3"));
  say_status("long", system(strcat(repeat(' ', 100000), "exit 4")) == 4 << 8);
  say_status("too long", system(repeat('x', 200000)));
}

static void on_signal(int number) { SAY("signal %d\n", number); }

static void say_state(const char* what) {
  struct sigaction interrupt, quit;
  sigset_t mask;
  sigaction(SIGINT, NULL, &interrupt);
  sigaction(SIGQUIT, NULL, &quit);
  sigprocmask(SIG_BLOCK, NULL, &mask);
  SAY("%s: INT %d QUIT %d CHLD blocked %d USR2 blocked %d\n", what,
      interrupt.sa_handler == on_signal, quit.sa_handler == SIG_IGN, sigismember(&mask, SIGCHLD),
      sigismember(&mask, SIGUSR2));
}

// While the command runs, SIGINT does not reach this process; the command itself has the default
// action unless the caller ignored the signal.
static void c_signals(void) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGINT, on_signal);
  signal(SIGQUIT, SIG_IGN);
  signal(SIGCHLD, on_signal);
  setenv("REPORT", "signals session", 1);
  say_status("interrupt", system("kill -INT $PPID; ./report"));
  say_state("after");
  // Not SigBlk: the parent may still be inside posix_spawn, which blocks all while it starts a
  // child.
  say_status("ignored in the parent", system("grep -e SigIgn /proc/$PPID/status"));
  say_status("blocked in the child", system("exec grep -e SigBlk -e SigIgn /proc/self/status"));
  say_status("child interrupted", system("kill -INT $$"));
  say_status("child quits", system("kill -QUIT $$; exit 5"));
  raise(SIGINT);
  say_state("end");
}

static void* run_exits(void* argument) {
  long wrong = 0;
  for (int i = 0; i < 10; ++i) {
    char command[32];
    const int code = (int)((long)argument * 10 + i) % 200;
    snprintf(command, sizeof(command), "exit %d", code);
    if (system(command) != code << 8) ++wrong;
  }
  return (void*)wrong;
}

static void c_threads(void) {
  pthread_t threads[8];
  long wrong = 0;
  signal(SIGINT, on_signal);
  signal(SIGQUIT, SIG_IGN);
  for (long i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, run_exits, (void*)i);
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    wrong += (long)result;
  }
  SAY("wrong: %ld\n", wrong);
  say_state("after");
}

static int ready[2];

static void* run_forever(void* unused) {
  (void)unused;
  system("echo ready >&9; exec sleep 1000");
  return NULL;
}

static void c_cancelled(void) {
  pthread_t thread;
  char byte;
  void* result;
  pipe(ready);
  dup2(ready[1], 9);
  signal(SIGINT, on_signal);
  signal(SIGQUIT, SIG_IGN);
  pthread_create(&thread, NULL, run_forever, NULL);
  SAY("ready %zd\n", read(ready[0], &byte, 1));
  pthread_cancel(thread);
  pthread_join(thread, &result);
  SAY("cancelled %d, no child left %d\n", result == PTHREAD_CANCELED,
      waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  say_state("after");
}

static void c_ignored_children(void) {
  signal(SIGCHLD, SIG_IGN);
  say_status("SIGCHLD ignored", system("exit 3"));
}

const struct Case shell_cases[] = {
    {"system_statuses", "shell", STUB_RUNS, c_statuses},
    {"system_signals", "shell", STUB_RUNS, c_signals},
    {"system_threads", "shell", STUB_RUNS, c_threads},
    {"system_cancelled", "shell", STUB_RUNS, c_cancelled},
    {"system_sigchld_ignored", "shell", STUB_RUNS, c_ignored_children},
    {NULL, NULL, 0, NULL},
};
