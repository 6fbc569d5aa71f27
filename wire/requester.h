#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <string>
#include <variant>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/wait_status.h"
#include "wire/message.h"
#include "wire/process_state.h"
#include "wire/relay.h"

// The requester's side of an exec: what the stub and the CLI share. Single-threaded callers only:
// signals are blocked for the whole process.
namespace wire {

/// Connects to a daemon's STREAM socket and checks by SO_PEERCRED that root or our own user
/// listens there, so nothing is sent to a squatter. ECONNREFUSED, ENOENT: nobody there; EPERM:
/// somebody else's. `path` must be shorter than sun_path (108 bytes): ENAMETOOLONG.
base::Result<base::UniqueFd> connect_to(const std::string& path);

/// The connection broke after the request was sent.
struct Lost {
  bool started = false;
  std::string why;
};

using Outcome = std::variant<Exited, NotStarted, RunHere, Lost>;

/// Blocks every signal and returns those that were blocked before (bit N-1). Called before the
/// request is sent, so that no signal meant for the program ends its requester.
std::uint64_t hold_signals();

struct AttendOptions {
  /// What hold_signals() returned.
  std::uint64_t blocked_before = 0;
  /// Called once the program runs; the caller closes its copies of the passed descriptors here.
  void (*on_started)(void*) = nullptr;
  /// Called once when the program has run for kLongRunMs.
  void (*on_long_run)(void*) = nullptr;
  /// Whether a signal was meant for this process or for its whole group; nullptr = the group.
  KillScope (*scope_of)(void*, const signalfd_siginfo&) = nullptr;
  /// Called when the program has stopped, and when it goes on; or nullptr. False: this process has
  /// stopped by the same `signal` before, and shall not once more.
  bool (*on_stopped)(void*, int signal) = nullptr;
  void (*on_continued)(void*) = nullptr;
  void* argument = nullptr;
  /// Signals (bit N-1) that were pending when the request was captured and travel in it; each is
  /// not forwarded a second time.
  std::uint64_t already_sent = 0;
  /// Set if the request asks for a terminal (Relay::offer()). Borrowed.
  Relay* terminal = nullptr;
  /// Stop this process while the program is stopped (a job of a shell).
  bool mirror_stops = true;
};

/// Waits for the end of the program that was requested on `socket` and meanwhile forwards every
/// signal this process gets. Signals before the program runs are kept for it; if kPatienceMs later
/// it still does not run they have their own effect, so that a router that hangs cannot make its
/// requesters unkillable. Blocks; gives up after kAnswerDeadlineMs without an answer.
Outcome attend(int socket, const AttendOptions& options);

}  // namespace wire
