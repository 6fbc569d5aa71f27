/* airlock_serve: a loadable builtin that makes bash run commands for a shell host.
 *
 *   enable -f airlock-shell.so airlock_serve; airlock_serve FD
 *
 * It never returns to the script that called it: commands come with their three descriptors over
 * the socket FD and go to parse_and_execute() in C, so there is no framing that output could forge
 * and nothing that aliases, functions, traps, IFS or PATH of the user could break.
 *
 * Before a command the shell forks a frozen copy of itself, the checkpoint. If the command ends the
 * shell (exit, set -e, exec, a signal), its wait status is the command's result, and the checkpoint
 * goes on as the shell, with everything as it was before that command.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#define _GNU_SOURCE
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bash's headers need this order. */
/* clang-format off */
#include <shell.h>
#include <builtins.h>
#include <common.h>
#include <jobs.h>
#include <version.h>
/* clang-format on */

#include "contexts/shell/shell_protocol.h"

/* Of bash; no header declares them. */
extern int expand_aliases;
extern int indirection_level;
extern int last_command_exit_value;

enum {
  kFirstOwnFd = 200, /* far from the numbers scripts use and from bash's own, which start at 10 */
  kStandardFds = 3,
  kMaxFds = kStandardFds + 1,
};

struct Incoming {
  struct ShellCommand header;
  char* payload; /* malloc'ed */
  int fds[kMaxFds];
  int fd_count;
};

struct Scoped {
  char* name;
  char* old_value; /* NULL: was not set */
  int was_exported;
};

static int host_fd = -1;
static int null_fd = -1;

/* ---- talking to the host ---- */

static int send_report(struct ShellReport report, const void* tail, size_t tail_bytes) {
  struct iovec parts[2] = {{&report, sizeof report}, {(void*)tail, tail_bytes}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  ssize_t sent;
  do sent = sendmsg(host_fd, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -1 : 0;
}

static void close_all(struct Incoming* command) {
  for (int i = 0; i < command->fd_count; ++i) close(command->fds[i]);
  command->fd_count = 0;
}

static void take_descriptors(struct msghdr* message, struct Incoming* command) {
  for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const int count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (int i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + (size_t)i * sizeof fd, sizeof fd);
      if (command->fd_count < kMaxFds)
        command->fds[command->fd_count++] = fd;
      else
        close(fd);
    }
  }
}

static int read_long_payload(int memfd, char* payload, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pread(memfd, payload + done, bytes - done, (off_t)done);
    if (n <= 0) return -1;
    done += (size_t)n;
  }
  return 0;
}

/* Takes the payload out of `buffer`, or out of the memfd that came with the command. */
static int take_payload(struct Incoming* command, const char* buffer, size_t came) {
  const size_t bytes = command->header.payload_bytes;
  const int is_long = command->header.is_long != 0;
  if (command->fd_count != kStandardFds + is_long || (!is_long && came != bytes)) return -1;
  command->payload = malloc(bytes + 1);
  if (command->payload == NULL) return -1;
  command->payload[bytes] = '\0';
  if (!is_long) {
    memcpy(command->payload, buffer, bytes);
    return 0;
  }
  const int result = read_long_payload(command->fds[kStandardFds], command->payload, bytes);
  close(command->fds[--command->fd_count]);
  return result;
}

/* The next command. -1: the host has gone. */
static int receive(struct Incoming* command) {
  static char buffer[kShellInlineBytes];
  char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  struct iovec parts[2] = {{&command->header, sizeof command->header}, {buffer, sizeof buffer}};
  struct msghdr message = {
      .msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t n;
  do n = recvmsg(host_fd, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < (ssize_t)sizeof command->header) return -1;
  command->fd_count = 0;
  take_descriptors(&message, command);
  return take_payload(command, buffer, (size_t)n - sizeof command->header);
}

/* ---- variables and folders ---- */

static char* next_string(char** at) {
  char* string = *at;
  *at += strlen(string) + 1;
  return string;
}

static void export_variable(char* entry) {
  char* equals = strchr(entry, '=');
  if (equals == NULL) return;
  *equals = '\0';
  SHELL_VAR* variable = bind_variable(entry, equals + 1, 0);
  if (variable != NULL) VSETATTR(variable, att_exported);
  *equals = '=';
  array_needs_making = 1;
}

static struct Scoped set_scoped(char* entry) {
  struct Scoped saved = {NULL, NULL, 0};
  char* equals = strchr(entry, '=');
  if (equals == NULL) return saved;
  saved.name = strndup(entry, (size_t)(equals - entry));
  const SHELL_VAR* old = find_variable(saved.name);
  if (old != NULL && value_cell(old) != NULL && !array_p(old) && !assoc_p(old)) {
    saved.old_value = strdup(value_cell(old));
    saved.was_exported = exported_p(old) != 0;
  }
  export_variable(entry);
  return saved;
}

static void restore_scoped(struct Scoped* saved) {
  if (saved->name == NULL) return;
  if (saved->old_value == NULL) {
    unbind_variable(saved->name);
  } else {
    SHELL_VAR* variable = bind_variable(saved->name, saved->old_value, 0);
    if (variable != NULL && !saved->was_exported) VUNSETATTR(variable, att_exported);
  }
  array_needs_making = 1;
  free(saved->name);
  free(saved->old_value);
}

/* As cd(1) does, PWD included. 0 or errno. */
static int enter(const char* folder) {
  if (chdir(folder) != 0) return errno;
  set_working_directory((char*)folder);
  bind_variable("PWD", (char*)folder, 0);
  array_needs_making = 1;
  return 0;
}

static char* current_folder(void) {
  char* folder = getcwd(NULL, 0);
  return folder != NULL ? folder : strdup("");
}

/* ---- what changed ---- */

struct Snapshot {
  char** entries; /* sorted copies */
  int count;
};

static int compare_entries(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Of what programs would get now. `_` is the last command's argument: always different. */
static struct Snapshot take_snapshot(void) {
  struct Snapshot taken = {NULL, 0};
  maybe_make_export_env();
  int count = 0;
  while (export_env != NULL && export_env[count] != NULL) ++count;
  taken.entries = malloc(sizeof(char*) * (size_t)(count + 1));
  if (taken.entries == NULL) return taken;
  for (int i = 0; i < count; ++i) {
    if (strncmp(export_env[i], "_=", 2) != 0) taken.entries[taken.count++] = strdup(export_env[i]);
  }
  qsort(taken.entries, (size_t)taken.count, sizeof(char*), compare_entries);
  return taken;
}

static void free_snapshot(struct Snapshot* taken) {
  for (int i = 0; i < taken->count; ++i) free(taken->entries[i]);
  free(taken->entries);
  taken->entries = NULL;
  taken->count = 0;
}

struct Tail {
  char bytes[kShellMaxReportBytes];
  size_t length;
  int is_truncated;
};

static void append(struct Tail* tail, const void* bytes, size_t length) {
  if (length > sizeof tail->bytes - tail->length) {
    tail->is_truncated = 1;
    return;
  }
  memcpy(tail->bytes + tail->length, bytes, length);
  tail->length += length;
}

static void append_name(struct Tail* tail, const char* entry, uint32_t* count) {
  const size_t length = strcspn(entry, "=");
  if (tail->length + length + 1 > sizeof tail->bytes) {
    tail->is_truncated = 1;
    return;
  }
  append(tail, entry, length);
  append(tail, "", 1);
  ++*count;
}

static int same_name(const char* a, const char* b) {
  const size_t length = strcspn(a, "=");
  return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* < 0: `old` has an entry that is not in `now`; > 0: the other way round; 0: both have it. */
static int compare_heads(const struct Snapshot* old, int o, const struct Snapshot* now, int n) {
  if (o == old->count) return 1;
  if (n == now->count) return -1;
  return strcmp(old->entries[o], now->entries[n]);
}

/* Names that are in one list only, or in both with different values. Both are sorted. */
static uint32_t append_changes(struct Tail* tail, const struct Snapshot* old,
                               const struct Snapshot* now) {
  uint32_t count = 0;
  int o = 0;
  int n = 0;
  while (o < old->count || n < now->count) {
    const int order = compare_heads(old, o, now, n);
    const int is_changed = order != 0 && o < old->count && n < now->count &&
                           same_name(old->entries[o], now->entries[n]);
    if (order != 0) append_name(tail, order < 0 ? old->entries[o] : now->entries[n], &count);
    if (order <= 0 || is_changed) ++o;
    if (order >= 0 || is_changed) ++n;
  }
  return count;
}

/* Pids of the shell's running jobs, so that the host can tell those that this command left. */
static uint32_t append_background(struct Tail* tail) {
  uint32_t count = 0;
  for (int i = 0; jobs != NULL && i < js.j_jobslots; ++i) {
    if (jobs[i] == NULL || jobs[i]->state == JDEAD || jobs[i]->pipe == NULL) continue;
    const PROCESS* process = jobs[i]->pipe;
    do {
      const int32_t pid = process->pid;
      if (PALIVE(process) && count < kShellMaxBackground) {
        append(tail, &pid, sizeof pid);
        ++count;
      }
      process = process->next;
    } while (process != jobs[i]->pipe);
  }
  return count;
}

/* ---- checkpoints ---- */

static int has_lock(int fd) {
  char path[64];
  char text[1024];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  const int info = open(path, O_RDONLY | O_CLOEXEC);
  if (info < 0) return 0;
  const ssize_t n = read(info, text, sizeof text - 1);
  close(info);
  if (n <= 0) return 0;
  text[n] = '\0';
  return strstr(text, "\nlock:") != NULL || strncmp(text, "lock:", 5) == 0;
}

/* A copy of the shell holds what the shell holds: the reader of a pipe would wait for it, and a
 * lock of the open file (flock(2)) would stay taken. */
static enum ShellNoCheckpoint obstacle(const struct Incoming* command) {
  for (int fd = kStandardFds; fd < kFirstOwnFd; ++fd) {
    int is_incoming = 0;
    for (int i = 0; i < command->fd_count; ++i) is_incoming |= command->fds[i] == fd;
    struct stat info;
    if (is_incoming || fcntl(fd, F_GETFD) < 0 || fstat(fd, &info) != 0) continue;
    if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) return kShellHoldsPipe;
    if ((S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && has_lock(fd)) return kShellHoldsLock;
  }
  return kShellCheckpointTaken;
}

struct Checkpoint {
  pid_t pid; /* 0: none */
  int release;
  enum ShellNoCheckpoint why_not;
};

/* In the copy: waits until the shell lets go (then the copy ends) or dies (then it returns). */
static void stay_frozen(int shell_pidfd, int release) {
  struct pollfd watched[2] = {{shell_pidfd, POLLIN, 0}, {release, POLLIN, 0}};
  for (;;) {
    if (poll(watched, 2, -1) < 0) continue;
    char byte;
    if ((watched[1].revents & POLLIN) != 0 && read(release, &byte, 1) == 1) _exit(0);
    if ((watched[0].revents & POLLIN) != 0) return;
    if ((watched[1].revents & POLLHUP) != 0) watched[1].fd = -1;
  }
}

/* What came while it was frozen was meant for the shell, which has died of it or has handled it. */
static void forget_signals(void) {
  sigset_t all;
  const struct timespec at_once = {0, 0};
  sigfillset(&all);
  while (sigtimedwait(&all, NULL, &at_once) > 0) {
  }
}

/* A shell without its host would run on, unseen. Not inherited by a fork. */
static void end_with_the_host(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

static void become_the_shell(void) {
  end_with_the_host();
  dollar_dollar_pid = getpid();
  delete_all_jobs(0); /* children of the dead shell, which are not ours to wait for */
  const struct ShellReport report = {.kind = kShellTakeover, .pid = getpid()};
  if (send_report(report, NULL, 0) != 0) _exit(1);
}

/* In the copy, until it is the shell. */
static void be_the_copy(struct Incoming* command, int shell_pidfd, int release) {
  close_all(command);
  stay_frozen(shell_pidfd, release);
  close(shell_pidfd);
  close(release);
  forget_signals();
  become_the_shell();
}

/* fork(2) with all signals held: 0 in the copy when it has become the shell, < 0: there is none. */
static pid_t fork_copy(struct Incoming* command, int shell_pidfd, const int* ends) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    be_the_copy(command, shell_pidfd, ends[0]);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return pid;
}

/* Returns twice: in the shell with the copy's pid, and in the copy, when it has become the shell,
 * with `is_copy` set. */
static struct Checkpoint take_checkpoint(struct Incoming* command, int* is_copy) {
  struct Checkpoint taken = {0, -1, obstacle(command)};
  *is_copy = 0;
  if (taken.why_not != kShellCheckpointTaken) return taken;
  taken.why_not = kShellForkFailed;
  int ends[2];
  const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (self < 0) return taken;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    close(self);
    return taken;
  }
  const pid_t pid = fork_copy(command, self, ends);
  *is_copy = pid == 0;
  if (*is_copy) return taken;
  close(self);
  close(ends[0]);
  if (pid > 0) {
    taken.pid = pid;
    taken.release = fcntl(ends[1], F_DUPFD_CLOEXEC, kFirstOwnFd);
    taken.why_not = kShellCheckpointTaken;
  }
  close(ends[1]);
  return taken;
}

/* The copy is reaped here, with SIGCHLD held: neither a CHLD trap nor `wait` ever hears of it. */
static void release_checkpoint(const struct Checkpoint* taken) {
  if (taken->pid == 0) return;
  sigset_t child;
  sigset_t before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  while (write(taken->release, "", 1) < 0 && errno == EINTR) {
  }
  close(taken->release);
  while (waitpid(taken->pid, NULL, 0) < 0 && errno == EINTR) {
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- one command ---- */

static void put_on_standard(const int* fds) {
  for (int i = 0; i < kStandardFds; ++i) dup2(fds != NULL ? fds[i] : null_fd, i);
}

static void flush_output(void) {
  fflush(stdout);
  fflush(stderr);
  clearerr(stdout); /* a reader that went away is this command's trouble, not the next one's */
  clearerr(stderr);
}

static int execute(const char* text) {
  indirection_level = 0; /* not one level in, as eval is: `set -x` is to show "+ ", not "++ " */
  /* parse_and_execute frees it. 257 stands for a syntax error at the end of the input. */
  const int status = parse_and_execute(savestring(text), "bash",
                                       SEVAL_NOHIST | SEVAL_NOOPTIMIZE | SEVAL_RESETLINE);
  return status > 255 ? EX_USAGE : status;
}

struct Usage {
  struct rusage self;
  struct rusage children;
};

static struct Usage usage_now(void) {
  struct Usage usage;
  getrusage(RUSAGE_SELF, &usage.self);
  getrusage(RUSAGE_CHILDREN, &usage.children);
  return usage;
}

static uint64_t microseconds_between(struct timeval from, struct timeval to) {
  return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_usec - from.tv_usec));
}

static void add_usage(struct ShellReport* report, const struct Usage* from) {
  const struct Usage to = usage_now();
  report->user_us = microseconds_between(from->self.ru_utime, to.self.ru_utime) +
                    microseconds_between(from->children.ru_utime, to.children.ru_utime);
  report->system_us = microseconds_between(from->self.ru_stime, to.self.ru_stime) +
                      microseconds_between(from->children.ru_stime, to.children.ru_stime);
  report->max_rss_kib = (uint64_t)to.children.ru_maxrss;
}

struct Scope {
  struct Scoped* variables;
  uint32_t count;
  char* folder; /* to return to; NULL: stay */
};

static void leave_scope(struct Scope* scope) {
  for (uint32_t i = scope->count; i > 0; --i) restore_scoped(&scope->variables[i - 1]);
  free(scope->variables);
  if (scope->folder != NULL) enter(scope->folder);
  free(scope->folder);
}

static void report_end(int status, const struct Snapshot* before, const struct Usage* usage) {
  static struct Tail tail;
  tail.length = 0;
  tail.is_truncated = 0;
  struct ShellReport report = {.kind = kShellDone, .pid = getpid(), .status = status};
  add_usage(&report, usage);
  report.background_count = append_background(&tail);
  char* folder = current_folder();
  append(&tail, folder, strlen(folder) + 1);
  free(folder);
  struct Snapshot now = take_snapshot();
  report.changed_count = append_changes(&tail, before, &now);
  free_snapshot(&now);
  report.is_truncated = (uint32_t)tail.is_truncated;
  send_report(report, tail.bytes, tail.length);
}

/* The parts of a command's payload. */
struct Text {
  char* scoped; /* the first of scoped_count entries */
  const char* scoped_folder;
  const char* command;
};

/* Makes what the context has changed the shell's own. 0, or errno: the folder cannot be entered. */
static int apply_context(struct Incoming* incoming, struct Text* text) {
  const struct ShellCommand* header = &incoming->header;
  char* at = incoming->payload;
  for (uint32_t i = 0; i < header->set_count; ++i) export_variable(next_string(&at));
  for (uint32_t i = 0; i < header->unset_count; ++i) unbind_variable(next_string(&at));
  text->scoped = at;
  for (uint32_t i = 0; i < header->scoped_count; ++i) next_string(&at);
  const char* folder = header->has_cwd ? next_string(&at) : NULL;
  text->scoped_folder = header->has_scoped_cwd ? next_string(&at) : NULL;
  text->command = at;
  return folder != NULL ? enter(folder) : 0;
}

/* 0, or errno: the folder cannot be entered. */
static int enter_scope(struct Scope* scope, uint32_t count, const struct Text* text) {
  char* at = text->scoped;
  scope->variables = calloc(count + 1, sizeof(struct Scoped));
  if (scope->variables == NULL) return ENOMEM;
  scope->count = count;
  for (uint32_t i = 0; i < count; ++i) scope->variables[i] = set_scoped(next_string(&at));
  if (text->scoped_folder == NULL) return 0;
  scope->folder = current_folder();
  return enter(text->scoped_folder);
}

static void refuse(int error, int is_scoped_folder) {
  const struct ShellReport report = {.kind = kShellRefused,
                                     .pid = getpid(),
                                     .error = error,
                                     .is_scoped_folder = (uint32_t)is_scoped_folder};
  send_report(report, NULL, 0);
}

/* With its own descriptors, environment and folder in place; `$?` of it. */
static int run_text(struct Incoming* command, const char* text,
                    const struct Checkpoint* checkpoint) {
  put_on_standard(command->fds);
  close_all(command);
  send_report((struct ShellReport){.kind = kShellStarted,
                                   .pid = getpid(),
                                   .checkpoint_pid = checkpoint->pid,
                                   .no_checkpoint = checkpoint->why_not},
              NULL, 0);
  const int status = execute(text);
  flush_output();
  put_on_standard(NULL);
  return status;
}

static void run(struct Incoming* command) {
  struct Text text;
  int error = apply_context(command, &text);
  if (error != 0) {
    close_all(command);
    return refuse(error, 0);
  }
  /* What belongs to this command alone comes after the checkpoint. */
  struct Checkpoint checkpoint = {0, -1, kShellNotWanted};
  if (command->header.wants_checkpoint) {
    int is_copy;
    checkpoint = take_checkpoint(command, &is_copy);
    if (is_copy) return;
  }
  struct Snapshot before = take_snapshot();
  struct Scope scope = {NULL, 0, NULL};
  error = enter_scope(&scope, command->header.scoped_count, &text);
  const struct Usage usage = usage_now();
  const int status = error == 0 ? run_text(command, text.command, &checkpoint) : 0;
  close_all(command);
  leave_scope(&scope);
  release_checkpoint(&checkpoint);
  if (error == 0) {
    report_end(status, &before, &usage);
    last_command_exit_value = status; /* $? of the next command */
  } else {
    refuse(error, 1);
  }
  free_snapshot(&before);
}

static int airlock_serve_builtin(WORD_LIST* list) {
  if (list == NULL || list->next != NULL) {
    builtin_usage();
    return EX_USAGE;
  }
  if (strcmp(dist_version, DISTVERSION) != 0) {
    builtin_error("made for bash %s, this is %s", DISTVERSION, dist_version);
    return EXECUTION_FAILURE;
  }
  host_fd = fcntl(atoi(list->word->word), F_DUPFD_CLOEXEC, kFirstOwnFd);
  close(atoi(list->word->word));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  null_fd = fcntl(null, F_DUPFD_CLOEXEC, kFirstOwnFd);
  close(null);
  if (host_fd < 0 || null_fd < 0) return EXECUTION_FAILURE;
  end_with_the_host();
  expand_aliases = 1; /* as at a prompt */
  send_report((struct ShellReport){.kind = kShellReady, .pid = getpid()}, NULL, 0);
  struct Incoming command;
  while (receive(&command) == 0) {
    run(&command);
    free(command.payload);
  }
  _exit(0); /* the host has gone: no EXIT trap, nobody would read it */
}

static char* airlock_serve_doc[] = {
    "Run commands that come over the socket FD. Used by airlock's shell host.", NULL};

/* The name bash looks for. */
struct builtin airlock_serve_struct = {"airlock_serve",   airlock_serve_builtin, BUILTIN_ENABLED,
                                       airlock_serve_doc, "airlock_serve FD",    0};
