// Programs named by descriptors and by /proc: what the name means is settled before the stub.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cases.h"

static int opened;
static const char* opened_path;

static void body_fexecve(void) { fexecve(opened, ARGV("zero", "one"), ARGV("REPORT=exe")); }
static void body_empty_path(void) {
  execveat(opened, "", ARGV("zero", "one"), ARGV("REPORT=exe"), AT_EMPTY_PATH);
}
static void body_path(void) { execve(opened_path, ARGV("zero", "one"), ARGV("REPORT=exe")); }

static void with_fd(const char* what, int fd) {
  opened = fd;
  in_child(what, body_fexecve);
  in_child(what, body_empty_path);
}

static void c_fexecve(void) {
  with_fd("plain", open("report", O_RDONLY));
  with_fd("close-on-exec", open("report", O_RDONLY | O_CLOEXEC));
  with_fd("O_PATH", open("report", O_PATH | O_CLOEXEC));
  with_fd("through a symlink", open("link", O_RDONLY | O_CLOEXEC));
}

static int copy_to(int out) {
  char buffer[65536];
  const int in = open("report", O_RDONLY);
  for (ssize_t n; (n = read(in, buffer, sizeof(buffer))) > 0;) {
    if (write(out, buffer, (size_t)n) != n) SAY("short write\n");
  }
  close(in);
  return out;
}

static int memory_file(unsigned flags) {
  const int fd = copy_to(memfd_create("in memory", flags));
  // A file open for writing cannot be executed; a second, read-only descriptor can.
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const int again = open(path, O_RDONLY | (flags & MFD_CLOEXEC ? O_CLOEXEC : 0));
  close(fd);
  return again;
}

static int deleted_file(int flags) {
  const int out = copy_to(open("deleted", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
  const int fd = open("deleted", O_RDONLY | flags);
  close(out);
  unlink("deleted");
  return fd;
}

static void c_nameless(void) {
  with_fd("memfd", memory_file(0));
  with_fd("close-on-exec memfd", memory_file(MFD_CLOEXEC));
  with_fd("deleted", deleted_file(0));
  with_fd("close-on-exec deleted", deleted_file(O_CLOEXEC));
  // Another file has taken the deleted one's place, or has the name the kernel gives it.
  const int fd = deleted_file(O_CLOEXEC);
  symlink("script", "deleted");
  with_fd("replaced", fd);
  symlink("script", "deleted (deleted)");
  with_fd("impersonated", fd);
  say_result("too big", fexecve(fd, ARGV("x", repeat('h', 200000)), environ));
  SAY("lowest free fd is the next: %d\n", dup(0) == fd + 1);
}

static void through(const char* path) {
  opened_path = path;
  in_child(path, body_path);
}

static void c_fd_paths(void) {
  dup2(open("report", O_RDONLY), 50);
  dup3(50, 51, O_CLOEXEC);
  dup2(memory_file(0), 52);
  dup3(52, 53, O_CLOEXEC);
  through("/proc/self/fd/50");
  through("/proc/self/fd/51");
  through("/proc/self/fd/52");
  through("/proc/self/fd/53");
  through("/dev/fd/51");
  through("/dev/fd/53");
  through("/proc/thread-self/fd/51");
  through("/proc/self/fd/99");
  through("/proc/self/fd/");
  through("/proc/self/fd/x");
  through("/dev/fd/99");
}

static void body_self(void) { execve(opened_path, ARGV("me", "--report"), environ); }

static void c_proc_self(void) {
  static const char* const paths[] = {"/proc/self/exe",          "/proc/thread-self/exe",
                                      "//proc//self///exe",      "/proc/self/cwd/exec_every_way",
                                      "/proc/self/root/nowhere", "/proc/self/cwd"};
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
    opened_path = paths[i];
    in_child(paths[i], body_self);
  }
  // Also by number, which only this process itself can use without being resolved.
  char by_pid[64];
  snprintf(by_pid, sizeof(by_pid), "/proc/%d/exe", getpid());
  say_result("by pid", execve(by_pid, ARGV("me", "--report"), environ));
}

static void c_fd_scripts(void) {
  const int kept = open("script_constant", O_RDONLY);
  const int lost = open("script_constant", O_RDONLY | O_CLOEXEC);
  const int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  opened = kept;
  in_child("script", body_fexecve);
  say_result("close-on-exec script", fexecve(lost, ARGV("x"), environ));
  say_result("and below a folder", execveat(folder, "script_constant", ARGV("x"), environ, 0));
}

static void c_bad_fds(void) {
  const int folder = open(".", O_RDONLY | O_DIRECTORY);
  const int text = open("text", O_RDONLY);
  say_result("fexecve -1", fexecve(-1, ARGV("x"), environ));
  say_result("fexecve closed", fexecve(99, ARGV("x"), environ));
  say_result("fexecve no argv", fexecve(folder, NULL, environ));
  say_result("fexecve no envp", fexecve(folder, ARGV("x"), NULL));
  say_result("fexecve folder", fexecve(folder, ARGV("x"), environ));
  say_result("fexecve text", fexecve(text, ARGV("x"), environ));
  say_result("fexecve denied", fexecve(open("denied", O_RDONLY), ARGV("x"), environ));
  say_result("execveat empty", execveat(folder, "", ARGV("x"), environ, 0));
  say_result("execveat bad flags", execveat(folder, "report", ARGV("x"), environ, 0x4000));
  say_result("execveat bad flags, missing", execveat(folder, "no", ARGV("x"), environ, 0x4000));
  say_result("execveat empty, bad flags", execveat(folder, "", ARGV("x"), environ, 0x4000));
  say_result("execveat symlink", execveat(folder, "link", ARGV("x"), environ, AT_SYMLINK_NOFOLLOW));
  say_result("execveat symlink in cwd",
             execveat(AT_FDCWD, "link", ARGV("x"), environ, AT_SYMLINK_NOFOLLOW));
  say_result("execveat fd of a symlink",
             execveat(open("link", O_PATH | O_NOFOLLOW), "", ARGV("x"), environ, AT_EMPTY_PATH));
  say_result("execveat below a file", execveat(text, "report", ARGV("x"), environ, 0));
  say_result("execveat below closed", execveat(99, "report", ARGV("x"), environ, 0));
  say_result("execveat cwd itself", execveat(AT_FDCWD, "", ARGV("x"), environ, AT_EMPTY_PATH));
  say_result("execveat check", execveat(folder, "report", ARGV("x"), environ, 0x10000));
  say_result("execveat check denied", execveat(folder, "denied", ARGV("x"), environ, 0x10000));
}

static void body_below(void) {
  execveat(opened, "report", ARGV("zero"), ARGV("REPORT=exe"), AT_SYMLINK_NOFOLLOW);
}
static void body_below_link(void) {
  execveat(opened, "../link", ARGV("zero"), ARGV("REPORT=exe"), 0);
}
static void body_absolute(void) {
  execveat(99, "/bin/sh", ARGV("zero", "-c", "echo absolute"), environ, 0);
}

static void c_execveat_below(void) {
  opened = open("bin_good", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (chdir("/") != 0) SAY("no /\n");
  in_child("a link's target", body_below_link);
  in_child("absolute", body_absolute);
  const int elsewhere = openat(opened, "..", O_PATH | O_CLOEXEC);
  opened = elsewhere;
  in_child("another folder's file", body_below);
}

// The folder's name no longer leads to it, so the file goes by descriptor.
static void c_execveat_moved(void) {
  mkdir("moved", 0755);
  const int out = open("moved/report", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  close(copy_to(out));
  opened = open("moved", O_PATH | O_DIRECTORY | O_CLOEXEC);
  unlink("moved/report");
  rmdir("moved");
  in_child("removed folder", body_below);
}

const struct Case fd_cases[] = {
    {"fexecve", "fd", STUB_RUNS, c_fexecve},
    {"fexecve_nameless", "fd", STUB_RUNS, c_nameless},
    {"fd_paths", "fd", STUB_RUNS, c_fd_paths},
    {"proc_self", "fd", STUB_RUNS, c_proc_self},
    {"fd_scripts", "fd", STUB_RUNS, c_fd_scripts},
    {"bad_fds", "fd", STUB_DOES_NOT, c_bad_fds},
    {"execveat_below", "fd", STUB_RUNS, c_execveat_below},
    {"execveat_removed_folder", "fd", STUB_DOES_NOT, c_execveat_moved},
    {NULL, NULL, 0, NULL},
};
