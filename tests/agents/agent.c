// An agent in the ways real ones start their commands. `agent WAY COMMAND…` runs COMMAND in bash
// and tells of itself, in lines that begin with "agent:", where it runs: with PLATFORM_KEY or
// without.
//
//   vfork         a vfork child of a threaded runtime, as Bun: session of its own, close_range,
//   execve in-place      execs itself in place first relaunch      runs itself as a child first
//   env-by-fd     its helper /proc/self/exe gets an empty environment, reads the real one from a
//                 descriptor and then execs the shell, as Codex
//   daemon        copies itself, starts the copy as a daemon that outlives it, asks ps for it
//   pty           in a terminal of its own
//   one-file      stdout and stderr are one regular file (its path is the next argument)
//   kill          kills the command's process group with SIGKILL once it has written a line
//   sandbox       in bwrap, with descriptors 3 to 7 as Claude Code's sandbox has them; with the
//   /proc that
//                 is there: in a container and in a context the kernel lets nobody mount another
//                 one
//   server        starts COMMAND as a language server that is told our pid (COMMAND: a program)
//   lsp           is such a server: says whether it can see its client
//   threads       the same from four threads at once
//   many          58 times, one after the other
//   show          only tells argv[0] and where it runs (what `exec -a` of a copy of it runs)
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void die(const char* what) {
  fprintf(stderr, "agent: %s: %s\n", what, strerror(errno));
  exit(99);
}

static void tell(const char* who) {
  printf("agent: %s %s PLATFORM_KEY\n", who, getenv("PLATFORM_KEY") ? "with" : "without");
  fflush(stdout);
}

static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) die("waitpid");
  }
  return status;
}

static int exit_code(int status) {
  if (WIFSIGNALED(status)) printf("agent: the command died of signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char* const* shell(char* command) {
  static _Thread_local char* argv[4];
  argv[0] = "bash";
  argv[1] = "-c";
  argv[2] = command;
  argv[3] = NULL;
  return argv;
}

// As bun-spawn: everything in the vfork child, on the parent's memory.
static pid_t spawn_by_vfork(char* const* argv) {
  const pid_t pid = vfork();
  if (pid < 0) die("vfork");
  if (pid > 0) return pid;
  setsid();
  signal(SIGPIPE, SIG_DFL);
  syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */);
  execve("/bin/bash", argv, environ);
  _exit(127);
}

static int by_vfork(char* command) { return exit_code(wait_for(spawn_by_vfork(shell(command)))); }

static void* run_in_thread(void* command) {
  const pid_t pid = spawn_by_vfork(shell(command));
  return (void*)(long)wait_for(pid);
}

static int by_threads(char* command) {
  pthread_t threads[4];
  int code = 0;
  for (int i = 0; i < 4; ++i) {
    if (pthread_create(&threads[i], NULL, run_in_thread, command) != 0) die("pthread_create");
  }
  for (int i = 0; i < 4; ++i) {
    void* status = NULL;
    pthread_join(threads[i], &status);
    code = exit_code((int)(long)status);
  }
  return code;
}

static int in_place(char* command) {
  char* argv[] = {"agent", "vfork", command, NULL};
  execve("/proc/self/exe", argv, environ);
  die("exec in place");
  return 99;
}

// COUNT times in place, each within the one before.
static int again(char** arguments) {
  const int left = atoi(arguments[0]);
  if (left == 0) return by_vfork(arguments[1]);
  char count[16];
  snprintf(count, sizeof count, "%d", left - 1);
  char* argv[] = {"agent", "again", count, arguments[1], NULL};
  execve("/proc/self/exe", argv, environ);
  die("exec in place");
  return 99;
}

// Many at once, each itself and then a shell.
static int crowd(char* command) {
  enum { kCount = 16 };
  pid_t pids[kCount];
  for (int i = 0; i < kCount; ++i) {
    pids[i] = fork();
    if (pids[i] != 0) continue;
    char* argv[] = {"agent", "vfork", command, NULL};
    execve("/proc/self/exe", argv, environ);
    die("/proc/self/exe");
  }
  int code = 0;
  for (int i = 0; i < kCount; ++i) code = exit_code(wait_for(pids[i]));
  return code;
}

static int relaunch(char* command) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) die("readlink");
  self[length] = '\0';
  const pid_t pid = fork();
  if (pid == 0) {
    char* argv[] = {"agent", "vfork", command, NULL};
    execv(self, argv);
    die(self);
  }
  return exit_code(wait_for(pid));
}

// ---- env-by-fd

static void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0) die("write");
    data += written;
    size -= (size_t)written;
  }
}

static int env_by_fd(char* command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  char fd[16], parent[16];
  snprintf(fd, sizeof fd, "%d", ends[1]);
  snprintf(parent, sizeof parent, "%d", getpid());
  const pid_t pid = vfork();
  if (pid == 0) {
    char* argv[] = {"/proc/self/exe", "setup", fd, parent, command, NULL};
    char* none[] = {NULL};
    execve("/proc/self/exe", argv, none);
    _exit(126);
  }
  close(ends[1]);
  unsigned size = 0;
  for (char** entry = environ; *entry != NULL; ++entry) size += (unsigned)strlen(*entry) + 1;
  write_all(ends[0], (char*)&size, sizeof size);
  for (char** entry = environ; *entry != NULL; ++entry) {
    write_all(ends[0], *entry, strlen(*entry) + 1);
  }
  const char marker[] = "FROM_DESCRIPTOR=yes";
  write_all(ends[0], marker, sizeof marker);
  shutdown(ends[0], SHUT_WR);
  char ack = 0;
  if (read(ends[0], &ack, 1) != 1) printf("agent: no acknowledgement\n");
  return exit_code(wait_for(pid));
}

static int setup(char** arguments) {
  const int fd = atoi(arguments[0]);
  if (getppid() != atoi(arguments[1])) {
    printf("agent: the helper's parent is another one\n");
    return 98;
  }
  if (*environ != NULL && strncmp(*environ, "LD_PRELOAD", 10) != 0 &&
      strncmp(*environ, "AIRLOCK_", 8) != 0) {
    printf("agent: the helper's environment is not empty: %s\n", *environ);
    return 98;
  }
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  static char text[1 << 21];
  size_t used = 0;
  for (ssize_t n = 1; n > 0; used += (size_t)n) {
    n = read(fd, text + used, sizeof text - used);
    if (n < 0) die("read the environment");
  }
  static char* env[4096];
  size_t count = 0;
  for (size_t at = sizeof(unsigned); at < used; at += strlen(text + at) + 1) {
    env[count++] = text + at;
  }
  env[count] = NULL;
  write_all(fd, "k", 1);
  syscall(SYS_close_range, 3, ~0U, 4);
  execve("/bin/bash", shell(arguments[2]), env);
  die("/bin/bash");
  return 99;
}

// ---- daemon

static void copy_self(const char* target) {
  const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const int to = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  if (from < 0 || to < 0) die(target);
  static char block[1 << 16];
  ssize_t n;
  while ((n = read(from, block, sizeof block)) > 0) write_all(to, block, (size_t)n);
  close(from);
  close(to);
}

// HOME/.fixture/copies/agent serves until its pipe, HOME/.fixture/ask, gets a line.
static int start_daemon(char* command) {
  char copy[4096], ask[4096];
  snprintf(copy, sizeof copy, "%s/.fixture/copies/agent", getenv("HOME"));
  snprintf(ask, sizeof ask, "%s/.fixture/ask", getenv("HOME"));
  copy_self(copy);
  if (mkfifo(ask, 0600) != 0) die(ask);
  int told[2];
  if (pipe(told) != 0) die("pipe");
  const pid_t middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    char fd[16];
    snprintf(fd, sizeof fd, "%d", told[1]);
    close(told[0]);
    const int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) dup2(null, i);
    char* argv[] = {copy, "serve", fd, command, NULL};
    execv(copy, argv);
    _exit(127);
  }
  close(told[1]);
  wait_for(middle);
  char pid[16] = "";
  if (read(told[0], pid, sizeof pid - 1) <= 0) die("the daemon does not answer");
  pid[strcspn(pid, "\n")] = '\0';
  // As Codex does: a bare ps, asked about a pid of ours.
  const pid_t ps = fork();
  if (ps == 0) {
    execlp("ps", "ps", "-p", pid, "-o", "args=", NULL);
    _exit(127);
  }
  printf("agent: ps ended with %d\n", exit_code(wait_for(ps)));
  return 0;
}

static int serve(char** arguments) {
  const int told = atoi(arguments[0]);
  char ask[4096], answer[32];
  snprintf(ask, sizeof ask, "%s/.fixture/ask", getenv("HOME"));
  snprintf(answer, sizeof answer, "%d\n", getpid());
  write_all(told, answer, strlen(answer));
  close(told);
  const int fd = open(ask, O_RDONLY | O_CLOEXEC);  // until somebody asks
  char line[64];
  if (fd < 0 || read(fd, line, sizeof line) <= 0) return 1;
  return by_vfork(arguments[1]);
}

// ---- the rest

static int in_pty(char* command) {
  int master = -1;
  struct winsize size = {.ws_row = 24, .ws_col = 80};
  const pid_t pid = forkpty(&master, NULL, NULL, &size);
  if (pid == 0) {
    execv("/bin/bash", shell(command));
    _exit(127);
  }
  char block[4096];
  ssize_t n;
  while ((n = read(master, block, sizeof block)) > 0) fwrite(block, 1, (size_t)n, stdout);
  return exit_code(wait_for(pid));
}

static int to_one_file(char* command, const char* path) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) die(path);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(fd, 1);
    dup2(fd, 2);
    execv("/bin/bash", shell(command));
    _exit(127);
  }
  const int code = exit_code(wait_for(pid));
  // The offset is the description's: it has moved with what the command wrote.
  printf("agent: offset %s size\n",
         lseek(fd, 0, SEEK_CUR) == lseek(fd, 0, SEEK_END) ? "is" : "is not");
  return code;
}

static int kill_group(char* command) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) die("pipe");
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    dup2(out[1], 1);
    execv("/bin/bash", shell(command));
    _exit(127);
  }
  close(out[1]);
  char c = 0;
  while (read(out[0], &c, 1) == 1 && c != '\n') putchar(c);
  printf("\nagent: kill(-pid, SIGKILL) gives %d\n", kill(-pid, SIGKILL));
  const int code = exit_code(wait_for(pid));
  // Whoever holds the pipe's other end still lives.
  printf("agent: the pipe ends with %zd\n", read(out[0], &c, 1));
  return code;
}

static int in_sandbox(char* command) {
  int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
  int sync[2], info[2], go[2];
  if (self < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, info) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) != 0) {
    die("prepare descriptors");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    const int high[] = {fcntl(self, F_DUPFD, 100), fcntl(sync[1], F_DUPFD, 100),
                        fcntl(info[1], F_DUPFD, 100), fcntl(go[1], F_DUPFD, 100)};
    const int targets[] = {3, 5, 6, 7};
    for (int i = 0; i < 4; ++i) dup2(high[i], targets[i]);
    syscall(SYS_close_range, 8, ~0U, 4);
    execl("/bin/sh", "sh", "-c",
          "read line <&7; exec bwrap --unshare-user --unshare-pid --cap-drop ALL --dev-bind / / "
          "--bind /proc /proc --sync-fd 5 --info-fd 6 /bin/bash -c '"
          "(eval \"$0\"); code=$?; /proc/self/fd/3 show; exit $code' \"$0\"",
          command, NULL);
    _exit(127);
  }
  close(info[1]);
  write_all(go[0], "go\n", 3);
  char text[4096] = "";
  const ssize_t n = read(info[0], text, sizeof text - 1);
  printf("agent: bwrap's info %s a child-pid\n",
         n > 0 && strstr(text, "child-pid") ? "has" : "has not");
  fflush(stdout);
  return exit_code(wait_for(pid));
}

static int start_server(const char* program) {
  char pid[16];
  snprintf(pid, sizeof pid, "%d", getpid());
  const pid_t server = fork();
  if (server == 0) {
    execlp(program, program, "lsp", pid, NULL);
    _exit(127);
  }
  return exit_code(wait_for(server));
}

static int be_server(const char* client) {
  tell("the server runs");
  const int sees = kill(atoi(client), 0) == 0 && atoi(client) == getppid();
  printf("agent: the server %s its client\n", sees ? "sees" : "does not see");
  return sees ? 0 : 1;
}

static int many_times(char* command) {
  int code = 0;
  for (int i = 0; i < 58; ++i) code = by_vfork(command);
  return code;
}

static int run(const char* way, char** arguments) {
  if (strcmp(way, "setup") == 0) return setup(arguments);
  if (strcmp(way, "serve") != 0) tell(way);
  if (strcmp(way, "vfork") == 0) return by_vfork(arguments[0]);
  if (strcmp(way, "threads") == 0) return by_threads(arguments[0]);
  if (strcmp(way, "in-place") == 0) return in_place(arguments[0]);
  if (strcmp(way, "relaunch") == 0) return relaunch(arguments[0]);
  if (strcmp(way, "again") == 0) return again(arguments);
  if (strcmp(way, "crowd") == 0) return crowd(arguments[0]);
  if (strcmp(way, "env-by-fd") == 0) return env_by_fd(arguments[0]);
  if (strcmp(way, "daemon") == 0) return start_daemon(arguments[0]);
  if (strcmp(way, "serve") == 0) return serve(arguments);
  if (strcmp(way, "pty") == 0) return in_pty(arguments[0]);
  if (strcmp(way, "one-file") == 0) return to_one_file(arguments[0], arguments[1]);
  if (strcmp(way, "kill") == 0) return kill_group(arguments[0]);
  if (strcmp(way, "sandbox") == 0) return in_sandbox(arguments[0]);
  if (strcmp(way, "server") == 0) return start_server(arguments[0]);
  if (strcmp(way, "lsp") == 0) return be_server(arguments[0]);
  if (strcmp(way, "many") == 0) return many_times(arguments[0]);
  fprintf(stderr, "agent: there is no way called %s\n", way);
  return 2;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "show") == 0) {
    printf("agent: called %s\n", argv[0]);
    tell("shown");
    return 0;
  }
  if (argc < 3) {
    fprintf(stderr, "usage: agent WAY COMMAND\n");
    return 2;
  }
  const int code = run(argv[1], argv + 2);
  fflush(stdout);
  return code;
}
