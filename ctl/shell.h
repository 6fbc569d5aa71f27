#pragma once

#include <string>

#include "ctl/commands.h"
#include "wire/requester.h"

namespace ctl {

/// What a program printed, and how it ended.
struct Captured {
  wire::Outcome outcome;
  std::string out;
  std::string err;

  /// Null unless it ran to its end.
  const wire::Exited* exited() const { return std::get_if<wire::Exited>(&outcome); }
};

/// Runs what `request` asks for, a program or a command text of a shell, with no terminal of ours.
/// Standard input is ours if `interactive`, else it is empty.
Captured run_captured(int socket, wire::ExecRequest request, bool interactive);

/// A command text in a persistent shell: it gets pipes where this process has terminals. A terminal
/// as standard input is not passed.
wire::Outcome run_in_shell(int socket, wire::ExecRequest request, bool interactive);

/// Prints the result of an exec as one JSON object (docs/SHELLS.md).
void print_result(const ExecOptions& options, const Captured& captured, std::uint64_t duration_ms);

}  // namespace ctl
