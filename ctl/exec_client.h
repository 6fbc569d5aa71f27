#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/message.h"
#include "wire/requester.h"

namespace ctl {

/// Exit codes of airlock itself (docs/PROTOCOL.md).
constexpr int kUsage = 2;
constexpr int kTimedOut = 124;
constexpr int kLost = 125;
constexpr int kRefused = 126;

/// How an exec ended, for the process to end alike.
struct Ending {
  /// A wait status (wait(2)).
  int wait_status = 0;
  /// A line for stderr, empty if the program's own end says it all.
  std::string message;
};

/// A request for `argv` in the caller's environment, folder and process state, with `fds` passed.
wire::ExecRequest make_request(const std::vector<std::string>& argv, const std::vector<int>& fds);

/// Whether a program gets a terminal: if one is passed to it, or in any case, on 0, 1 and 2.
enum class TerminalWish { as_passed, always };

/// Sends the request on a control connection and stays until the program has ended, forwarding
/// signals and relaying to its terminal. `fds` are borrowed; the caller's copies of 0 and 1 are
/// replaced by /dev/null once the program runs, so that it alone holds its pipes.
wire::Outcome attend_request(int socket, wire::ExecRequest request, const std::vector<int>& fds,
                             TerminalWish wish = TerminalWish::as_passed);

/// `program` is what the message calls it.
Ending ending_of(const wire::Outcome& outcome, const std::string& program);

/// Both in one.
Ending run_request(int socket, wire::ExecRequest request, const std::vector<int>& fds,
                   TerminalWish wish = TerminalWish::as_passed);

}  // namespace ctl
