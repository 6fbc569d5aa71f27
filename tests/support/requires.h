#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

namespace support {

/// True, and a warning in the report, when this process is not root: the test ends then.
inline bool lacks_root() {
  if (::geteuid() == 0) return false;
  WARN("not run: needs root");
  return true;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AIRLOCK_TSAN 1
#endif
#endif

/// True, and a warning, under ThreadSanitizer: its runtime has a thread, and so glibc handlers for
/// its own signals 32 and 33.
inline bool lacks_libc_signals() {
#ifdef AIRLOCK_TSAN
  WARN("not run: signals 32 and 33 are glibc's under ThreadSanitizer");
  return true;
#else
  return false;
#endif
}

}  // namespace support
