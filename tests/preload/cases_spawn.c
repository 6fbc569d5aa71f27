// posix_spawn and posix_spawnp: return value, file actions and attributes.
#include <signal.h>

#include "cases.h"

static posix_spawn_file_actions_t actions;
static posix_spawnattr_t attributes;

// The child's own output comes first, always.
static void finish(const char* what, int error, pid_t pid) {
  if (error == 0) say_end(what, pid);
  say_error(what, error);
}

static void spawn_report(const char* what, const char* path, char** envp) {
  pid_t pid = -1;
  const int error = posix_spawn(&pid, path, &actions, &attributes, ARGV("zero", "a b"), envp);
  finish(what, error, pid);
}

static void spawnp_report(const char* what, const char* name) {
  pid_t pid = -1;
  finish(what, posix_spawnp(&pid, name, &actions, &attributes, ARGV("zero"), ARGV("Y=2")), pid);
}

static void fresh(void) {
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
}

static void c_plain(void) {
  pid_t pid = -1;
  errno = 0;
  int error = posix_spawn(&pid, "./report", NULL, NULL, ARGV("zero", "\xff"), ARGV("A=1", "A=2"));
  const int errno_after = errno;
  finish("posix_spawn", error, pid);
  SAY("errno %d\n", errno_after);
  error = posix_spawn(&pid, "./report", NULL, NULL, ARGV("zero"), NULL);
  finish("envp NULL", error, pid);
  error = posix_spawn(NULL, "./missing", NULL, NULL, ARGV("zero"), NULL);
  say_error("pid NULL", error);
  error = posix_spawn(&pid, "./report", NULL, NULL, many_words("many", 2000), ARGV("A=1"));
  finish("2000 words", error, pid);
  error = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, ARGV("me", "--report"), environ);
  finish("/proc/self/exe", error, pid);
}

static void c_search(void) {
  fresh();
  setenv("PATH", "/nowhere:bin_denied:bin_good", 1);
  spawnp_report("later element", "prog");
  spawnp_report("text", "text_prog");
  spawnp_report("missing", "no-such-program");
  setenv("PATH", "bin_denied:script", 1);
  spawnp_report("denied", "prog");
  spawnp_report("empty name", "");
  spawnp_report("long name", repeat('n', 300));
  spawnp_report("slash", "./report");
  setenv("PATH", "", 1);
  spawnp_report("empty PATH", "report");
}

static void c_actions(void) {
  fresh();
  posix_spawn_file_actions_addopen(&actions, 60, "script", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 1, 61);
  posix_spawn_file_actions_addclose(&actions, 0);
  spawn_report("open, dup2, close", "./report", ARGV("REPORT=fds"));
  posix_spawn_file_actions_addclosefrom_np(&actions, 61);
  spawn_report("closefrom", "./report", ARGV("REPORT=fds"));
  posix_spawn_file_actions_addopen(&actions, 62, "missing", O_RDONLY, 0);
  spawn_report("an action fails", "./report", ARGV("REPORT=fds"));
}

static void c_attributes(void) {
  fresh();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  posix_spawnattr_setsigmask(&attributes, &set);
  signal(SIGUSR1, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sigaddset(&set, SIGUSR1);
  posix_spawnattr_setsigdefault(&attributes, &set);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  spawn_report("signals and group", "./report", ARGV("REPORT=signals session"));
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  spawn_report("session", "./report", ARGV("REPORT=session"));
}

// A relative path is looked up where the actions lead, not where the parent is.
static void c_chdir(void) {
  fresh();
  posix_spawn_file_actions_addchdir_np(&actions, "bin_good");
  spawn_report("exists only there", "./prog", ARGV("REPORT=exe"));
  spawn_report("relative interpreter there", "./relative_script", environ);
  spawn_report("absolute", "/bin/true", environ);
  char* script = realpath("bin_good/relative_script", NULL);
  spawn_report("absolute script, relative interpreter there", script, environ);
  setenv("PATH", "/nowhere:/usr/bin:/bin", 1);
  spawnp_report("search", "true");
  posix_spawn_file_actions_t copy = actions;
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "./prog", &copy, NULL, ARGV("zero"), ARGV("Z=3"));
  finish("a copy of the actions", error, pid);
  posix_spawn_file_actions_destroy(&actions);

  fresh();
  spawn_report("the same struct without chdir", "./prog", environ);
  posix_spawn_file_actions_addfchdir_np(&actions, open("bin_good", O_RDONLY | O_CLOEXEC));
  spawn_report("fchdir", "./prog", ARGV("REPORT=exe"));
}

// An absolute path that fails, and a directory that does: both are the parent's to hear.
static void c_chdir_errors(void) {
  fresh();
  posix_spawn_file_actions_addchdir_np(&actions, "bin_good");
  spawn_report("missing", "/nowhere/prog", environ);
  spawnp_report("missing in PATH", "no-such-program");
  setenv("PATH", "bin_denied:bin_good:/usr/bin", 1);
  spawnp_report("only where the parent is", "prog");
  posix_spawn_file_actions_addchdir_np(&actions, "missing");
  spawn_report("no such folder", "./prog", environ);
}

static void c_fd_made_by_actions(void) {
  fresh();
  const int report = open("report", O_RDONLY | O_CLOEXEC);
  posix_spawn_file_actions_adddup2(&actions, report, 70);
  spawn_report("fd of the child", "/proc/self/fd/70", ARGV("REPORT=exe"));
  char path[64];
  snprintf(path, sizeof(path), "/dev/fd/%d", report);
  spawn_report("fd of the parent", path, ARGV("REPORT=exe"));
  close(report);
  unlink("link");
  const int nameless = open("link_target", O_RDONLY | O_CLOEXEC);
  unlink("link_target");
  snprintf(path, sizeof(path), "/proc/self/fd/%d", nameless);
  spawn_report("deleted", path, ARGV("REPORT=exe"));
  SAY("lowest free fd %d\n", dup(0));
}

const struct Case spawn_cases[] = {
    {"spawn_plain", "spawn", STUB_RUNS, c_plain},
    {"spawn_search", "spawn", STUB_RUNS, c_search},
    {"spawn_actions", "spawn", STUB_RUNS, c_actions},
    {"spawn_attributes", "spawn", STUB_RUNS, c_attributes},
    {"spawn_chdir", "spawn", STUB_RUNS, c_chdir},
    {"spawn_chdir_errors", "spawn", STUB_DOES_NOT, c_chdir_errors},
    {"spawn_fd_paths", "spawn", STUB_RUNS, c_fd_made_by_actions},
    {NULL, NULL, 0, NULL},
};
