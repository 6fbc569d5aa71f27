#pragma once

#include <cstdint>
#include <string>

/// A process in the stub's process group that only tells what the whole group was sent. kill(2) of
/// a process and of its group look alike to who is hit; but what the witness got too went to all.
class GroupWitness {
 public:
  GroupWitness() = default;
  ~GroupWitness() { stop(); }
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// Starts the witness: a clone in this process's memory, which dies with it. Without effect if
  /// there can be none (RLIMIT_NPROC). All signals must be blocked.
  void start();
  bool is_running() const { return pid_ > 0; }
  /// True if the group has been sent `signal` since the last question. Waits for the witness, which
  /// the kernel serves before us (it joined the group later): some µs, at most 100 ms.
  bool has_seen(int signal);
  /// True if it is stopped, or about to be: so is the group. Raw system calls only; for another
  /// process in this memory.
  bool is_stopping() const;
  /// Ends and reaps it, so that nobody else has to.
  void stop();

 private:
  enum Word : int { idle, asked, answered };

  static void run(void* witness);
  void drain();

  static constexpr unsigned kStackSize = 8192;
  alignas(16) char stack_[kStackSize];
  int word_ = idle;
  std::uint64_t seen_ = 0;
  long pid_ = 0;
  int stub_ = 0;
  /// Its /proc/PID/status.
  std::string status_;
};
