#include "contexts/shell/command.h"

#include <signal.h>

namespace contexts::shell {

const char* explain(ShellNoCheckpoint why) {
  switch (why) {
    case kShellCheckpointTaken:
      return "";
    case kShellNotWanted:
      return "not asked for";
    case kShellHoldsPipe:
      return "the shell itself holds a pipe or a socket, which a copy would hold too";
    case kShellHoldsLock:
      return "the shell itself holds a file lock, which a copy would hold too";
    case kShellMakesNoCopies:
      return "only bash with airlock's builtin makes copies of itself";
    case kShellForkFailed:
      break;
  }
  return "the shell could not be copied: no processes or memory left";
}

int wait_status_of(const Command& command, int dollar_question) {
  constexpr int kBySignal = 128;
  const int signal = dollar_question - kBySignal;
  if (command.timed_out && (signal == SIGTERM || signal == SIGKILL)) return signal;
  return (dollar_question & 0xff) << 8;
}

}  // namespace contexts::shell
