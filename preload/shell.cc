// system(3) on the routed spawn. libc's own spawns inside libc, where nobody can interpose.
#include "preload/shell.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/spawn.h"

namespace preload {
namespace {

constexpr int kNotRun = 127 << 8;  // the wait status of _exit(127)

/// SIGINT and SIGQUIT are the process's, so the first of several threads ignores them and the
/// last one puts them back; SIGCHLD is blocked per thread.
pthread_mutex_t ignoring_lock = PTHREAD_MUTEX_INITIALIZER;
int ignoring_threads = 0;
struct sigaction interrupt_before;
struct sigaction quit_before;

struct ShellSignals {
  sigset_t mask_before;
  sigset_t child_defaults;  // what the child must not inherit as ignored
};

void suspend_signals(ShellSignals& signals) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigemptyset(&signals.child_defaults);

  pthread_mutex_lock(&ignoring_lock);
  if (ignoring_threads++ == 0) {
    sigaction(SIGINT, &ignore, &interrupt_before);
    sigaction(SIGQUIT, &ignore, &quit_before);
  }
  if (interrupt_before.sa_handler != SIG_IGN) sigaddset(&signals.child_defaults, SIGINT);
  if (quit_before.sa_handler != SIG_IGN) sigaddset(&signals.child_defaults, SIGQUIT);
  pthread_mutex_unlock(&ignoring_lock);
  pthread_sigmask(SIG_BLOCK, &child, &signals.mask_before);
}

void resume_signals(const ShellSignals& signals) {
  pthread_mutex_lock(&ignoring_lock);
  if (--ignoring_threads == 0) {
    sigaction(SIGINT, &interrupt_before, nullptr);
    sigaction(SIGQUIT, &quit_before, nullptr);
  }
  pthread_mutex_unlock(&ignoring_lock);
  pthread_sigmask(SIG_SETMASK, &signals.mask_before, nullptr);
}

int spawn_command(int* pid, const char* command, const ShellSignals& signals) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &signals.mask_before);
  posix_spawnattr_setsigdefault(&attributes, &signals.child_defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int error = spawn_shell(pid, "sh", "-c", command, nullptr, &attributes, environ);
  posix_spawnattr_destroy(&attributes);
  return error;
}

struct RunningCommand {
  int pid;
  ShellSignals signals;
};

/// The thread is cancelled while it waits: the child goes with it, as in glibc.
void abandon(void* argument) {
  const auto* running = static_cast<RunningCommand*>(argument);
  kill(running->pid, SIGKILL);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  wait_for(running->pid);
  resume_signals(running->signals);
}

int run_command(const char* command) {
  KeepErrno keep;
  RunningCommand running;
  int status = kNotRun;
  suspend_signals(running.signals);
  const int error = spawn_command(&running.pid, command, running.signals);
  if (error == 0) {
    pthread_cleanup_push(abandon, &running);
    status = wait_for(running.pid);
    if (status < 0) keep.replace(errno);
    pthread_cleanup_pop(0);
  } else {
    keep.replace(error);
  }
  resume_signals(running.signals);
  return status;
}

/// nullptr asks whether there is a shell, and trying is the one way to know.
int system_routed(const char* command) {
  if (command == nullptr) return run_command("exit 0") == 0;
  return run_command(command);
}

}  // namespace

int spawn_shell(int* pid, const char* argv0, const char* flag, const char* command,
                const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                char* const envp[]) {
  char* const argv[] = {const_cast<char*>(argv0), const_cast<char*>(flag),
                        const_cast<char*>(command), nullptr};
  return spawn(
      {real().posix_spawn, pid, "/bin/sh", Lookup::as_given, actions, attributes, argv, envp});
}

int wait_for(int pid) {
  int status;
  pid_t result;
  do {
    result = waitpid(pid, &status, 0);
  } while (result < 0 && errno == EINTR);
  return result == pid ? status : -1;
}

}  // namespace preload

#pragma GCC visibility push(default)
extern "C" {

int system(const char* command) { return preload::system_routed(command); }

// Old binaries and libraries call the alias.
int __libc_system(const char* command) { return preload::system_routed(command); }
}
#pragma GCC visibility pop
