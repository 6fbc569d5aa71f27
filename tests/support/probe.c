// airlock-test-probe FD: tells on descriptor FD what an exec leaves a program with, one
// "key=value" per line. A plain C program without sanitizers, which would open files of their own.
// airlock-test-probe connect PATH [unshare]: connects to a UNIX socket and waits for its end,
// before that with a PID namespace for its children if asked to.

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

extern char** environ;

enum { kMostFds = 5000 };

static int open_numbers[kMostFds];
static int open_count;

// First of all: whatever is opened later takes a free number.
static void find_fds(void) {
  for (int fd = 0; fd < kMostFds; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) open_numbers[open_count++] = fd;
  }
}

static void print_fds(FILE* out) {
  for (int i = 0; i < open_count; ++i) {
    char path[64], target[4096] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", open_numbers[i]);
    if (readlink(path, target, sizeof target - 1) < 0) strcpy(target, "?");
    fprintf(out, "fd%d=%s\n", open_numbers[i], target);
  }
}

static void print_ids(FILE* out) {
  fprintf(out, "pid=%d\nppid=%d\npgrp=%d\nsid=%d\n", getpid(), getppid(), getpgrp(), getsid(0));
  fprintf(out, "uid=%u\neuid=%u\ngid=%u\negid=%u\ngroups=", getuid(), geteuid(), getgid(),
          getegid());
  gid_t groups[256];
  const int count = getgroups(256, groups);
  for (int i = 0; i < count; ++i) fprintf(out, "%s%u", i > 0 ? "," : "", groups[i]);
  fprintf(out, "\n");
}

// SigIgn, SigBlk, CapBnd, NoNewPrivs… as the kernel tells them.
static void print_status(FILE* out) {
  FILE* status = fopen("/proc/self/status", "re");
  char line[4096];
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    char* colon = strchr(line, ':');
    if (colon == NULL) continue;
    *colon = '\0';
    char* value = colon + 1;
    while (isspace((unsigned char)*value)) ++value;
    fprintf(out, "%s=%s", line, value);
  }
  if (status != NULL) fclose(status);
}

static void print_limits(FILE* out) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  fprintf(out, "nofile=%llu/%llu\n", (unsigned long long)limit.rlim_cur,
          (unsigned long long)limit.rlim_max);
  getrlimit(RLIMIT_CORE, &limit);
  fprintf(out, "core=%llu/%llu\n", (unsigned long long)limit.rlim_cur,
          (unsigned long long)limit.rlim_max);
  const mode_t mask = umask(0);
  fprintf(out, "umask=%o\nnice=%d\npersonality=%x\n", mask, getpriority(PRIO_PROCESS, 0),
          (unsigned)personality(0xffffffff));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  fprintf(out, "cpus=%d\n", CPU_COUNT(&cpus));
}

static void print_attributes(FILE* out) {
  int subreaper = 0, death_signal = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  prctl(PR_GET_PDEATHSIG, &death_signal);
  fprintf(out, "subreaper=%d\npdeathsig=%d\nslack=%d\nscheduler=%d\n", subreaper, death_signal,
          prctl(PR_GET_TIMERSLACK), sched_getscheduler(0));
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; ++which) {
    struct itimerval timer = {0};
    getitimer(which, &timer);
    fprintf(out, "timer%d=%ld,%ld\n", which, (long)timer.it_value.tv_sec,
            (long)timer.it_interval.tv_sec);
  }
  FILE* file = fopen("/proc/self/oom_score_adj", "re");
  int adjustment = 0;
  if (file != NULL && fscanf(file, "%d", &adjustment) == 1) {
    fprintf(out, "oom_score_adj=%d\n", adjustment);
  }
  if (file != NULL) fclose(file);
}

static void print_processes(FILE* out) {
  DIR* proc = opendir("/proc");
  fprintf(out, "processes=");
  for (const struct dirent* entry; proc != NULL && (entry = readdir(proc)) != NULL;) {
    if (isdigit((unsigned char)entry->d_name[0])) fprintf(out, "%s ", entry->d_name);
  }
  fprintf(out, "\n");
  if (proc != NULL) closedir(proc);
}

static int connect_and_wait(const char* path, int has_own_namespace) {
  if (has_own_namespace && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return 96;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) != 0) return 95;
  char byte;
  while (read(fd, &byte, 1) > 0) {
  }
  return 0;
}

int main(int argc, char* argv[]) {
  if (argc > 2 && strcmp(argv[1], "connect") == 0) return connect_and_wait(argv[2], argc > 3);
  find_fds();
  const int number = argc > 1 ? atoi(argv[1]) : 1;
  FILE* out = fdopen(fcntl(number, F_DUPFD_CLOEXEC, 0), "w");
  if (out == NULL) return 98;
  print_fds(out);
  print_ids(out);
  print_status(out);
  print_limits(out);
  print_attributes(out);
  print_processes(out);
  char folder[4096];
  fprintf(out, "cwd=%s\n", getcwd(folder, sizeof folder) != NULL ? folder : "?");
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
  fprintf(out, "terminal=%s\n", terminal >= 0 ? "yes" : "no");
  for (int i = 0; i < argc; ++i) fprintf(out, "argv%d=%s\n", i, argv[i]);
  for (int i = 0; environ[i] != NULL; ++i) fprintf(out, "env%d=%s\n", i, environ[i]);
  fprintf(out, "end=yes\n");
  return fclose(out) == 0 ? 0 : 97;
}
