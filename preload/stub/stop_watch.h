#pragma once

#include <string>

#include "preload/stub/group_witness.h"

/// A process beside the stub that tells the init of a SIGSTOP: no process can catch that, and one
/// that is stopped tells nobody; but a tracer hears of it (ptrace(2), group-stop). It lets go at
/// once, so that the stub is stopped like any other process, and takes hold when it goes on.
class StopWatch {
 public:
  explicit StopWatch(const GroupWitness& witness) : witness_(witness) {}
  ~StopWatch() { stop(); }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  /// Starts it: a clone in this process's memory, which dies with it and writes to `socket`.
  /// Without effect where there can be no tracer: somebody else traces the stub, ptrace(2) is
  /// forbidden, or the stub cannot be read (under binfmt). All signals must be blocked.
  void start(int socket);
  /// The stub goes on.
  void take_hold();
  /// The program has stopped by `signal`. False: because the stub was, and has gone on since. Else
  /// the stub stops itself now, and there is nothing to tell until take_hold().
  bool is_new(int signal);
  /// The program goes on: its next stop is a new one.
  void forget() { has_told_ = false; }
  /// Ends and reaps it.
  void stop();

 private:
  static void run(void* watch);
  bool watch_once();
  void tell();

  static constexpr unsigned kStackSize = 8192;
  alignas(16) char stack_[kStackSize];
  const GroupWitness& witness_;
  /// Frames made beforehand: the stub may be stopped inside an allocation.
  std::string to_group_;
  std::string to_process_;
  int socket_ = -1;
  /// The stub stops of itself.
  bool passes_ = false;
  bool has_told_ = false;
  /// How often take_hold() was called; a futex.
  int holds_ = 0;
  long pid_ = 0;
  int stub_ = 0;
};
