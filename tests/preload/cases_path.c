// PATH search and the /bin/sh fallback of execvp, execlp and execvpe.
#include "cases.h"

static const char* search_path;
static const char* searched_name;

static void search(void) {
  if (search_path != NULL) {
    setenv("PATH", search_path, 1);
  } else {
    unsetenv("PATH");
  }
  execvp(searched_name, ARGV("zero", "one"));
}

static void search_in(const char* path, const char* name) {
  search_path = path;
  searched_name = name;
  SAY("PATH=%s\n", path != NULL ? path : "(unset)");
  in_child(name, search);
}

static void c_order(void) {
  search_in("bin_good:bin_other", "prog");
  search_in("bin_other:bin_good", "prog");
  search_in("bin_denied:bin_good", "prog");
  search_in("bin_folder:bin_good", "prog");
  search_in("script:bin_good", "prog");
  search_in("/nowhere:bin_good", "prog");
  search_in("loop:bin_good", "prog");
}

static void c_empty_elements(void) {
  search_in("", "report");
  search_in("/nowhere:", "report");
  search_in(":/nowhere", "report");
  search_in("/nowhere::/nowhere", "report");
  search_in(".", "report");
}

static void c_unset(void) { search_in(NULL, "true"); }

static void c_failures(void) {
  search_in("bin_denied", "prog");
  search_in("bin_folder", "prog");
  search_in("bin_denied:/nowhere", "prog");
  search_in("/nowhere", "prog");
  search_in("script", "prog");
  search_in("/nowhere:script", "prog");
  search_in("loop", "prog");
  search_in("bin_badshebang", "prog");
  search_in(NULL, "no-such-program-here");
  search_in("bin_good", "");
  search_in("bin_good", "sub/prog");
  search_in("bin_good", "bin_denied/prog");
  search_in("/bin", repeat('n', 256));
  search_in("/bin", repeat('n', 4999));
}

// The environment of the new program has no say in where it is found.
static void c_own_path_counts(void) {
  setenv("PATH", "bin_good", 1);
  say_result("execvpe", execvpe("prog", ARGV("zero"), ARGV("PATH=bin_other", "X=1")));
}

static void c_long_path(void) {
  char* path = malloc(20000);
  sprintf(path, "%s:bin_good", repeat('/', 3000));
  search_in(path, "prog");
  path[0] = '\0';
  for (int i = 0; i < 500; ++i) strcat(path, "/nowhere/else:");
  search_in(strcat(path, "bin_good"), "prog");
}

static void fallback(void) { execvp("./text", ARGV("zero", "one", "two words", "")); }
static void fallback_p(void) { execlp("text_prog", "zero", "one", NULL); }
static void fallback_e(void) {
  execvpe("text_prog", ARGV("zero"), ARGV("PATH=/nowhere", "GREETING=hello"));
}
static void fallback_no_argv(void) { execvp("./text", (char*[]){NULL}); }
static void fallback_many(void) { execvp("./count", many_words("zero", 3000)); }
static void fallback_empty_file(void) { execvp("./empty", ARGV("zero")); }
static void fallback_elf(void) { execvp("./elf4", ARGV("zero")); }

static void c_fallback(void) {
  setenv("PATH", "bin_good:/usr/bin:/bin", 1);
  in_child("execvp", fallback);
  in_child("execlp in PATH", fallback_p);
  in_child("execvpe in PATH", fallback_e);
  in_child("no argv", fallback_no_argv);
  in_child("3000 words", fallback_many);
  in_child("empty file", fallback_empty_file);
  in_child("half an ELF header", fallback_elf);
}

const struct Case path_cases[] = {
    {"path_order", "exec", STUB_RUNS, c_order},
    {"path_empty_elements", "exec", STUB_RUNS, c_empty_elements},
    {"path_unset", "exec", STUB_RUNS, c_unset},
    {"path_failures", "exec", STUB_DOES_NOT, c_failures},
    {"path_is_the_callers", "exec", STUB_RUNS, c_own_path_counts},
    {"path_long", "exec", STUB_RUNS, c_long_path},
    {"shell_fallback", "exec", STUB_RUNS, c_fallback},
    {NULL, NULL, 0, NULL},
};
