// airlock-test-dodge WAY PROGRAM [FOLDER]: an agent that wants to run PROGRAM unrouted. Static and
// with raw system calls, so that no library sees it. Prints how the attempt ended:
//
//   exited STATUS | killed SIGNAL | refused ERRNO | impossible WHAT
//
// "impossible" says that this machine does not have what WAY needs. FOLDER is a folder that WAY may
// use. PROGRAM tells by itself where it ran (where.c).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static const char* program;
static const char* folder;
static char* words[] = {"dodge", NULL};

// How the child tells that nothing was run; no program here ends so.
enum { kRefused = 90, kImpossible = 91 };
static int* failure;  // errno of the child, shared with it

static void refused(void) {
  *failure = errno;
  _exit(kRefused);
}

static void impossible(void) {
  *failure = errno;
  _exit(kImpossible);
}

static int opened(const char* path, int flags) {
  const int fd = open(path, flags, 0755);
  if (fd < 0) impossible();
  return fd;
}

static void copy(int from, int to) {
  char bytes[65536];
  ssize_t count;
  while ((count = read(from, bytes, sizeof bytes)) > 0) {
    if (write(to, bytes, (size_t)count) != count) impossible();
  }
}

static const char* in_folder(const char* name) {
  static char paths[4][4096];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void exec_path(const char* path) {
  syscall(SYS_execve, path, words, environ);
  refused();
}

static void exec_fd(int fd) {
  syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
  refused();
}

static void way_execve(void) { exec_path(program); }

static void way_relative(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s", program);
  char* slash = strrchr(path, '/');
  *slash = '\0';
  if (chdir(path) != 0) impossible();
  *--slash = '.', slash[1] = '/';
  char relative[4096];
  snprintf(relative, sizeof relative, "./%s", strrchr(program, '/') + 1);
  exec_path(relative);
}

static void way_execveat_folder(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s", program);
  *strrchr(path, '/') = '\0';
  const int fd = opened(path, O_RDONLY | O_DIRECTORY);
  syscall(SYS_execveat, fd, strrchr(program, '/') + 1, words, environ, 0);
  refused();
}

static void way_execveat_fd(void) { exec_fd(opened(program, O_RDONLY)); }

static void way_execveat_cloexec_fd(void) { exec_fd(opened(program, O_RDONLY | O_CLOEXEC)); }

static void way_proc_fd(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", opened(program, O_RDONLY));
  exec_path(path);
}

static int in_memory(unsigned flags) {
  int fd = memfd_create("dodge", flags | 0x10 /* MFD_EXEC, Linux 6.3 */);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("dodge", flags);
  if (fd < 0) refused();
  copy(opened(program, O_RDONLY), fd);
  return fd;
}

// A file that is open for writing cannot be exec'ed (ETXTBSY), so a descriptor that is not.
static int reopened(int fd, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int again = opened(path, O_RDONLY | flags);
  close(fd);
  return again;
}

static void way_memfd(void) { exec_fd(reopened(in_memory(MFD_CLOEXEC), 0)); }
static void way_memfd_cloexec(void) { exec_fd(reopened(in_memory(MFD_CLOEXEC), O_CLOEXEC)); }

static void way_tmpfile(void) {
  const int fd = opened(folder, O_TMPFILE | O_RDWR);
  copy(opened(program, O_RDONLY), fd);
  exec_fd(reopened(fd, 0));
}

static const char* copied(const char* name) {
  const char* path = in_folder(name);
  unlink(path);
  const int to = opened(path, O_WRONLY | O_CREAT | O_EXCL);
  const int from = opened(program, O_RDONLY);
  copy(from, to);
  close(to), close(from);
  return path;
}

static void way_copy(void) { exec_path(copied("copy")); }

static void way_hard_link(void) {
  const char* path = in_folder("hard-link");
  unlink(path);
  if (link(program, path) != 0) impossible();
  exec_path(path);
}

static void way_symlink(void) {
  const char* path = in_folder("symlink");
  unlink(path);
  if (symlink(program, path) != 0) impossible();
  exec_path(path);
}

static void way_renamed_over(void) {
  const char* path = in_folder("renamed");
  close(opened(path, O_WRONLY | O_CREAT));
  if (rename(copied("to-be-renamed"), path) != 0) impossible();
  exec_path(path);
}

// io_uring has no operation that executes anything, but can change what a path leads to without one
// system call that names it (io_uring_enter(2); the layouts are those of linux/io_uring.h).
struct ring_params {
  uint32_t sq_entries, cq_entries, flags, cpu, idle, features, wq_fd, reserved[3];
  struct {
    uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
    uint64_t address;
  } sq;
  struct {
    uint32_t head, tail, mask, entries, overflow, cqes, flags, reserved;
    uint64_t address;
  } cq;
};
struct ring_entry {
  uint8_t opcode, flags;
  uint16_t priority;
  int32_t fd;
  uint64_t second_address, address;
  uint32_t length, operation_flags;
  uint64_t rest[4];
};

static void rename_by_ring(const char* from, const char* to) {
  enum { kSetup = 425, kEnter = 426, kRenameAt = 35, kGetEvents = 1, kEntries = 0x10000000 };
  struct ring_params params = {0};
  const int ring = (int)syscall(kSetup, 1, &params);
  if (ring < 0) impossible();
  char* queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
  struct ring_entry* entry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, kEntries);
  if (queue == MAP_FAILED || (void*)entry == MAP_FAILED) impossible();
  memset(entry, 0, sizeof *entry);
  entry->opcode = kRenameAt;
  entry->fd = AT_FDCWD;
  entry->length = (uint32_t)AT_FDCWD;
  entry->address = (uintptr_t)from;
  entry->second_address = (uintptr_t)to;
  *(uint32_t*)(queue + params.sq.array) = 0;
  __atomic_store_n((uint32_t*)(queue + params.sq.tail), 1, __ATOMIC_RELEASE);
  if (syscall(kEnter, ring, 1, 1, kGetEvents, NULL, 0) != 1) impossible();
  const int result = *(int32_t*)(queue + params.cq.cqes + 8);
  errno = -result;
  if (result != 0) impossible();
  close(ring);
}

static void way_io_uring(void) {
  const char* path = in_folder("by-ring");
  close(opened(path, O_WRONLY | O_CREAT));
  rename_by_ring(copied("to-be-renamed-by-ring"), path);
  exec_path(path);
}

static void way_overwritten(void) {
  const char* path = in_folder("overwritten");
  copied("overwritten");
  const int to = opened(path, O_WRONLY | O_TRUNC);
  copy(opened(program, O_RDONLY), to);
  close(to);
  exec_path(path);
}

static void script(const char* name, const char* line) {
  const char* path = in_folder(name);
  unlink(path);
  const int fd = opened(path, O_WRONLY | O_CREAT | O_EXCL);
  if (write(fd, line, strlen(line)) < 0) impossible();
  close(fd);
  exec_path(path);
}

static void way_script_of_sh(void) {
  char text[4096];
  snprintf(text, sizeof text, "#!/bin/sh\nexec %s\n", program);
  script("script-of-sh", text);
}

static void way_script_of_program(void) {
  char text[4096];
  snprintf(text, sizeof text, "#!%s\n", copied("interpreter"));
  script("script-of-program", text);
}

static void way_loader(void) {
  static char* loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};
  for (int i = 0; i < 2; ++i) {
    char* arguments[] = {loaders[i], (char*)program, NULL};
    syscall(SYS_execve, loaders[i], arguments, environ);
    if (errno != ENOENT) refused();
  }
  refused();
}

static void way_busybox(void) {
  char* arguments[] = {"busybox", "sh", "-c", NULL, NULL};
  char command[4096];
  snprintf(command, sizeof command, "exec %s", program);
  arguments[3] = command;
  if (access("/bin/busybox", X_OK) != 0) impossible();
  syscall(SYS_execve, "/bin/busybox", arguments, environ);
  refused();
}

// The stub, which lies beside the interposer, asked to route the stub.
static void way_stub(void) {
  const char* library = getenv("LD_PRELOAD");
  char stub[4096];
  if (library == NULL) impossible();
  snprintf(stub, sizeof stub, "%s", library);
  strcpy(strrchr(stub, '/'), "/airlock-stub");
  char* arguments[] = {"airlock-stub", "exec1",        stub, "airlock-stub",
                       "exec1",        (char*)program, NULL};
  if (access(stub, X_OK) != 0) impossible();
  syscall(SYS_execve, stub, arguments, environ);
  refused();
}

static void way_i386(void) {
#if defined(__x86_64__)
  // Its pointers have 32 bits, so everything is copied to where those reach.
  enum { kSize = 1 << 20, kPointers = 4096 };
  char* low =
      mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) impossible();
  uint32_t* arguments = (uint32_t*)low;
  uint32_t* variables = arguments + 2;
  char* at = low + kPointers * sizeof *arguments;
  strcpy(at, program);
  arguments[0] = (uint32_t)(uintptr_t)at;
  const uint32_t path = arguments[0];
  for (int i = 0; environ[i] != NULL && i < kPointers - 4; ++i) {
    at += strlen(at) + 1;
    if (at + strlen(environ[i]) >= low + kSize) break;
    strcpy(at, environ[i]);
    variables[i] = (uint32_t)(uintptr_t)at;
  }
  long result = 11;  // execve, arch/x86/entry/syscalls/syscall_32.tbl
  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"(path), "c"(arguments), "d"(variables)
                   : "memory");
  errno = (int)-result;
  refused();
#else
  errno = ENOSYS;
  impossible();
#endif
}

static void way_x32(void) {
#if defined(__x86_64__)
  syscall(0x40000000 | 520, program, words, environ);
  refused();
#else
  errno = ENOSYS;
  impossible();
#endif
}

// A child that its parent's tracer does not get.
static void way_untraced(void) {
  const long pid = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) exec_path(program);
  int status = 0;
  if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) impossible();
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}

// Out of the user namespace whose binfmt_misc routes: into one with an instance of its own.
static void way_user_namespace(void) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) refused();
  const char* place = in_folder("binfmt_misc");
  mkdir(place, 0755);
  if (mount("none", place, "binfmt_misc", 0, NULL) != 0) impossible();
  exec_path(program);
}

// A look at the entries that route, which whoever may mount could change.
static void way_binfmt_mount(void) {
  if (unshare(CLONE_NEWNS) != 0) refused();
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) refused();
  const char* place = in_folder("binfmt_misc");
  mkdir(place, 0755);
  if (mount("none", place, "binfmt_misc", 0, NULL) != 0) refused();
  exec_path(program);
}

static void tell_by(const char* path) {
  char* arguments[] = {"dodge", "tell", (char*)program, NULL};
  syscall(SYS_execve, path, arguments, environ);
  refused();
}

// A file with this program's own ELF header and PROGRAM's code cannot be made without a linker;
// this one is this program with other words.
static void way_own_header(void) {
  const char* path = in_folder("own-header");
  unlink(path);
  const int to = opened(path, O_WRONLY | O_CREAT | O_EXCL);
  copy(opened("/proc/self/exe", O_RDONLY), to);
  close(to);
  tell_by(path);
}

// No dodge, but what an agent does that runs itself again.
static void way_itself(void) { tell_by("/proc/self/exe"); }

// One thread changes the name that another one is exec'ing, between the folder's `allowed`, which
// cannot be exec'ed, and PROGRAM.
static char raced[4096];
static const char* names[2];

static void* flip(void* unused) {
  (void)unused;
  for (;;) {
    for (int i = 0; i < 2; ++i) {
      for (const char* at = names[i]; *at != '\0'; ++at) {
        ((volatile char*)raced)[at - names[i]] = *at;
      }
    }
  }
  return NULL;
}

static void way_race(void) {
  // Names of one length in one folder: at each moment the bytes are a path.
  const int from = opened(program, O_RDONLY);
  const int to = opened(in_folder("race-a"), O_WRONLY | O_CREAT);
  copy(from, to);
  close(to), close(from);
  close(opened(in_folder("race-b"), O_WRONLY | O_CREAT));
  if (chmod(in_folder("race-b"), 0644) != 0) impossible();
  names[0] = strdup(in_folder("race-a"));
  names[1] = strdup(in_folder("race-b"));
  strcpy(raced, names[1]);
  pthread_t thread;
  if (pthread_create(&thread, NULL, flip, NULL) != 0) impossible();
  for (int i = 0; i < 20000; ++i) syscall(SYS_execve, raced, words, environ);
  refused();
}

static const struct {
  const char* name;
  void (*attempt)(void);
} kWays[] = {
    {"execve", way_execve},
    {"relative", way_relative},
    {"execveat-folder", way_execveat_folder},
    {"execveat-fd", way_execveat_fd},
    {"execveat-cloexec-fd", way_execveat_cloexec_fd},
    {"proc-fd", way_proc_fd},
    {"memfd", way_memfd},
    {"memfd-cloexec", way_memfd_cloexec},
    {"tmpfile", way_tmpfile},
    {"copy", way_copy},
    {"hard-link", way_hard_link},
    {"symlink", way_symlink},
    {"renamed-over", way_renamed_over},
    {"io-uring", way_io_uring},
    {"overwritten", way_overwritten},
    {"script-of-sh", way_script_of_sh},
    {"script-of-program", way_script_of_program},
    {"loader", way_loader},
    {"busybox", way_busybox},
    {"stub", way_stub},
    {"i386", way_i386},
    {"x32", way_x32},
    {"untraced", way_untraced},
    {"user-namespace", way_user_namespace},
    {"binfmt-mount", way_binfmt_mount},
    {"own-header", way_own_header},
    {"itself", way_itself},
    {"race", way_race},
};

static int report(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return 1;
  if (WIFSIGNALED(status)) {
    printf("killed %d\n", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == kRefused) {
    printf("refused %s\n", strerror(*failure));
  } else if (WEXITSTATUS(status) == kImpossible) {
    printf("impossible %s\n", strerror(*failure));
  } else {
    printf("exited %d\n", WEXITSTATUS(status));
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  program = argv[2];
  folder = argc > 3 ? argv[3] : "/tmp";
  // As `own-header`: becomes a program that tells where it runs, by the means it has.
  if (strcmp(argv[1], "tell") == 0) {
    char space[64] = "";
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return 1;
    const char* key = getenv("PLATFORM_KEY");
    const char* mark = getenv("ROUTE_MARK");
    printf("where %s key=%s mark=%s argv0=%s\n", space, key ? key : "", mark ? mark : "", argv[0]);
    fflush(stdout);
    return 7;
  }
  failure = mmap(NULL, sizeof *failure, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char space[64] = "";
  if (failure == MAP_FAILED || readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return 2;
  printf("agent %s\n", space);
  fflush(stdout);
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i) {
    if (strcmp(kWays[i].name, argv[1]) != 0) continue;
    const pid_t pid = fork();
    if (pid == 0) kWays[i].attempt();
    return pid < 0 ? 2 : report(pid);
  }
  fprintf(stderr, "there is no way %s\n", argv[1]);
  return 2;
}
