#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/shell/report.h"
#include "wire/message.h"

namespace contexts::shell {

/// What runs the commands of a shell, one at a time. Its process is a child of this one, reaped by
/// whoever reaps.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual wire::ShellEngine kind() const = 0;
  /// To be watched: readable when receive() has something. Borrowed.
  virtual int socket() const = 0;
  /// The shell, or what runs the command for now; 0 = nobody.
  virtual int pid() const = 0;
  /// Runs a command with these three descriptors.
  virtual base::Result<void> send(const CommandText& text,
                                  const std::vector<base::UniqueFd>& standard) = 0;
  /// The next report; nothing if there is none now. ECONNRESET: nobody is left who could report.
  virtual base::Result<std::optional<Report>> receive() = 0;
  /// It has taken all it was sent and is not to be heard from any more.
  virtual bool is_deaf() const { return false; }
  /// The first line it has written to its stderr before it was ready: why it is not.
  virtual std::string complaint() const { return {}; }
  /// The checkpoint `pid` is the shell from now on.
  virtual void taken_over_by(int /*pid*/) {}
  /// The end of pid() is the end of the command, not of the shell.
  virtual bool ends_with_command() const { return false; }
  /// Then also: where the next command runs, and why this one did not start, if it did not.
  virtual std::string folder() const { return {}; }
  virtual std::optional<wire::NotStarted> refusal() const { return {}; }
  /// pid() has been reaped: from now on that number may be anybody's.
  virtual void has_ended() = 0;
  /// SIGKILL.
  virtual void kill() = 0;
};

/// For a process that an engine starts: it leads a group, has this process's user and limits, and
/// no signal blocked or ignored. What runs, and with which descriptors, is left to the engine.
wire::ExecRequest request_in(const std::string& folder);

/// What is to be such a process's stderr until it is ready: a file in memory.
base::Result<base::UniqueFd> make_complaints();
/// Its first line, without the prefix of bash's messages.
std::string read_complaints(int complaints);

}  // namespace contexts::shell
