// Pure: the PATH search of execvp(3), one candidate at a time.
#pragma once

#include <linux/limits.h>

namespace preload {

/// A search path being walked. `rest` is nullptr when it is used up.
struct PathSearch {
  const char* rest;
  /// Elements that do not begin with '/' depend on a directory this process does not know
  /// (posix_spawn's chdir actions) and are left out.
  bool absolute_only = false;
};

/// The value of PATH in this process's own environment, or what glibc searches without one. Reads
/// `environ` directly: getenv(3) is not promised to be async-signal-safe.
const char* search_path();

enum class Candidate { found, none_left, too_long };

/// Writes the next "ELEMENT/name" to `out` (the bare name for an empty element: the current
/// directory). too_long: it does not fit PATH_MAX.
Candidate next_candidate(PathSearch& search, const char* name, char (&out)[PATH_MAX]);

/// The errno values after which glibc tries the next element (posix/execvpe.c); EACCES among them
/// is remembered for the end.
bool search_goes_on(int error);

}  // namespace preload
