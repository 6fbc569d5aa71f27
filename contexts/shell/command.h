#pragma once

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/shell/report.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace contexts::shell {

/// One command of a requester, waiting or running.
struct Command {
  std::uint64_t job = 0;
  base::UniqueFd connection;
  wire::Receiver receiver;
  wire::ExecRequest request;
  /// What becomes 0, 1 and 2; closed once it runs.
  std::vector<base::UniqueFd> standard;

  // From its start on:
  std::uint64_t started_ms = 0;
  std::uint64_t started_ticks = 0;
  int shell = 0;
  /// The frozen copy, 0 = none.
  int checkpoint = 0;
  ShellNoCheckpoint no_checkpoint = kShellNotWanted;
  bool is_running = false;
  /// The shell has said so: how it ends now is the command's doing.
  bool has_begun = false;
  bool is_interrupted = false;

  // How it is being ended:
  std::uint64_t deadline_ms = 0;  ///< next step, 0 = none
  enum class Ending { none, asked, killed } ending = Ending::none;
  int kills = 0;  ///< how often all that it started was killed
  bool timed_out = false;
};

/// For a person: why there is no copy to go back to. Empty if there is one.
const char* explain(ShellNoCheckpoint why);

/// The wait status a requester sees: the shell's own death, or `$?`. A timeout that ended by a
/// signal is that signal, however the shell put it (128 + N).
int wait_status_of(const Command& command, int dollar_question);

}  // namespace contexts::shell
