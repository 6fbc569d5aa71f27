#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "wire/message.h"
#include "wire/outer_terminal.h"
#include "wire/terminal_bytes.h"

namespace wire {

/// The requester's side of a program with a terminal of its own: relays bytes between that one (the
/// *inner* terminal, of which it has the master) and what the requester itself was started on (the
/// *outer* one), and keeps up job control between the two: only who is in the outer foreground
/// reads and is raw, stops stop the requester's group and give the outer terminal back, a resume
/// takes it again. For single-threaded callers that block all signals (hold_signals()).
///
/// In a pipeline (standard input is no terminal, or output a pipe) several requesters share the
/// outer terminal, so the program starts in the background of the inner one: the stop by SIGTTIN or
/// SIGTTOU when it first wants the terminal is what makes the relay take the outer one for it.
class Relay {
 public:
  /// Asks in `request` for the terminal that is among 0, 1 and 2: by hand-over if this process
  /// leads its session, else by relay. nullptr: none of them is a terminal.
  static std::unique_ptr<Relay> offer(ExecRequest& request);
  /// Asks for a terminal on 0, 1 and 2 even where here they are none; `request` passes none of
  /// them. Then 0 is read until its end, which the program sees as that of its terminal, and 1
  /// written.
  static std::unique_ptr<Relay> force(ExecRequest& request);

  /// The program runs and has the terminal of `master`. Messages go to `connection`.
  void start(base::UniqueFd master, int connection);
  /// Gives the outer terminal up as this session's controlling one (TIOCNOTTY), for the program to
  /// take. Returns those of SIGHUP and SIGCONT that were pending before (bit N-1): the kernel sends
  /// both to the foreground group then, and none of either is left.
  std::uint64_t give_up();
  /// The program runs without one; nothing is held any more.
  void decline();
  /// From start() on, until the outer terminal is gone.
  bool is_running() const { return static_cast<bool>(master_); }

  static constexpr int kWatched = 4;
  /// What to poll(2) for; entries that are not used have fd -1. The timeout in ms, -1 = none.
  int watch(pollfd* watched) const;
  /// After poll(2).
  void act(const pollfd* watched);

  /// The outer terminal has another size (SIGWINCH).
  void resize();
  /// The program was stopped by `signal`. May stop this process and its group, and returns when it
  /// runs again.
  void suspend(int signal);
  /// This process was continued (SIGCONT).
  void resume();
  /// The program has ended: all that it wrote comes out, and the outer terminal gets its settings
  /// back, or those the program chose if it was not killed. Blocks while output is held up.
  void finish(bool was_killed);

 private:
  Relay() = default;
  bool try_attach();
  void adopt_settings();
  void detach();
  void tell_resumed();
  void read_outer();
  void write_inner();
  void read_inner();
  void write_outer();
  void flush_output();
  void end_input();
  void lose_outer();

  std::optional<OuterTerminal> outer_;
  /// What to read and write: the outer terminal, or plain descriptors.
  int input_ = -1;
  int output_ = -1;
  base::UniqueFd master_;
  int connection_ = -1;
  /// The program is to have the outer terminal when it may be had.
  bool wants_input_ = false;
  /// It has it: this relay holds it and reads it.
  bool is_attached_ = false;
  /// The relay works, and another requester holds the outer terminal.
  bool is_queueing_ = false;
  bool is_inner_ended_ = false;
  base::Termios initial_;
  winsize size_{};
  std::string to_inner_;
  std::string to_outer_;
  TypedSignals typed_;
  NewlineRestorer newlines_;
};

/// Stops this process by `signal`, and with `whole_group` whoever shares its group, as a terminal
/// would have done. Returns when it runs again, or at once where the kernel drops terminal stops
/// (orphaned groups, setpgid(2)).
void stop_by(int signal, bool whole_group);

}  // namespace wire
