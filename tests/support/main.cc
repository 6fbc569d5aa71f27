// The entry point of every Catch2 program here; compiled once.

#define CATCH_CONFIG_RUNNER
// A forked child that dies of a signal on purpose must not report a failed test in its place.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#include <sys/resource.h>

#include <catch2/catch.hpp>

int main(int argc, char* argv[]) {
  // Tests pass more than a thousand descriptors at once.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return Catch::Session().run(argc, argv);
}
