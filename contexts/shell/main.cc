// airlock-shell: the host of one persistent shell. A job of a context like any other; routerd gives
// it commands over descriptor 3.
//
//   airlock-shell BASH LOADABLE RECEIVER [report]
//
// report: routerd wants a JobEnded for each command that has run.

#include <fcntl.h>
#include <signal.h>

#include "contexts/shell/host.h"

int main(int argc, char** argv) {
  constexpr int kChannel = 3;
  if (argc < 4 || argc > 5 || ::fcntl(kChannel, F_SETFD, FD_CLOEXEC) != 0) return 126;
  for (int signal = 1; signal <= 64; ++signal) ::signal(signal, SIG_DFL);
  contexts::shell::Host(
      kChannel,
      {.bash = argv[1], .loadable = argv[2], .receiver = argv[3], .reports_jobs = argc == 5})
      .run();
  return 0;
}
