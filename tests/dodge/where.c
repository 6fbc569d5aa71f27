// airlock-test-where [STATUS]: tells where it runs and what it can see, and ends with STATUS (7).
// Built dynamic and static: what a dodge tries to get run unrouted.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char* variable(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

int main(int argc, char** argv) {
  char space[64];
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  space[length > 0 ? length : 0] = '\0';
  printf("where %s key=%s mark=%s argv0=%s\n", space, variable("PLATFORM_KEY"),
         variable("ROUTE_MARK"), argv[0]);
  fflush(stdout);
  return argc > 1 ? atoi(argv[1]) : 7;
}
