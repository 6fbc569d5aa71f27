// exec_every_way: one fixture process per case, run once bare and once under the interposer. A
// case prints everything that a caller could notice; oracle.sh compares the two outputs.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum Stub {
  STUB_RUNS,      // the interposer must have exec'ed the stub at least once
  STUB_DOES_NOT,  // every exec of the case fails before the stub is reached, or there is none
};

struct Case {
  const char* name;
  const char* group;
  enum Stub stub;
  void (*run)(void);
};

extern const struct Case exec_cases[];
extern const struct Case path_cases[];
extern const struct Case fd_cases[];
extern const struct Case errno_cases[];
extern const struct Case spawn_cases[];
extern const struct Case shell_cases[];
extern const struct Case popen_cases[];
extern const struct Case word_cases[];
extern const struct Case stress_cases[];
extern const struct Case protocol_cases[];  // run by protocol.sh, under the interposer only

// Straight to the descriptor: what a child prints must not depend on a parent's buffer.
#define SAY(...) dprintf(STDOUT_FILENO, __VA_ARGS__)

/// Prints "what: 0" or "what: ENOENT" for a function that returns -1 and sets errno.
void say_result(const char* what, int result);

/// The same for a function that returns an errno value.
void say_error(const char* what, int error);

/// Forks, runs `body`, and prints "what: " and how the child ended; a `body` that returns (its
/// exec has failed) prints errno and exits 99.
void in_child(const char* what, void (*body)(void));

/// Waits and prints "what: exited N" or "what: killed by N".
void say_end(const char* what, pid_t pid);

/// A string of `length` times `byte`, never freed.
char* repeat(char byte, size_t length);

/// argv {name, "0", "1", ..., NULL} with `count` words after the name, never freed.
char** many_words(const char* name, int count);

#define ARGV(...) ((char*[]){__VA_ARGS__, NULL})
