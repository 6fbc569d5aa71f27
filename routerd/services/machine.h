#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "routerd/services/spec.h"

namespace routerd::services {

/// waiting: for its next start. failed: it ended and its policy is to leave it so.
enum class State { stopped, waiting, starting, ready, stopping, failed };

const char* name_of(State state);

/// What the owner of a Machine has to do, in order.
enum class Action {
  spawn,        ///< start the program and begin to probe
  ask_to_stop,  ///< send its stop signal
  kill,         ///< SIGKILL
};

/// How one run of the program ended.
struct End {
  bool is_success = false;
  /// For people: "exit code 1", "killed by SIGSEGV", "not started: …".
  std::string text;
};

/// The life of one service: when it is started, given up on and started again. Pure: told what
/// happened and what time it is, it says what to do (take_actions()) and when to call again
/// (deadline()). Time is any monotonic clock's.
class Machine {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Machine(const ServiceSpec& spec);

  /// Orders. restart() of what runs stops it first.
  void start(Time now);
  void stop(Time now);
  void restart(Time now);

  /// What happened.
  void became_ready(Time now);
  void ended(Time now, const End& end);
  /// The deadline() has come.
  void expired(Time now);

  std::vector<Action> take_actions();
  std::optional<Time> deadline() const { return deadline_; }

  State state() const { return state_; }
  Time since() const { return since_; }
  bool is_running() const;
  /// Died this many times in a row without being ready for kStableAfter in between.
  unsigned failures() const { return failures_; }
  bool is_crash_looping() const { return failures_ >= kCrashLoop; }
  /// Starts after the first.
  std::uint64_t restarts() const { return spawns_ == 0 ? 0 : spawns_ - 1; }
  /// How the last run ended; empty = it has not.
  const std::string& last_end() const { return last_end_; }

  static constexpr unsigned kCrashLoop = 5;
  static constexpr milliseconds kStableAfter{10'000};

 private:
  void enter(State state, Time now);
  void spawn(Time now);
  void begin_stop(Time now);
  milliseconds delay() const;

  Restart policy_;
  milliseconds restart_delay_, max_restart_delay_, ready_timeout_, stop_timeout_;
  State state_ = State::stopped;
  Time since_{};
  std::optional<Time> deadline_;
  std::vector<Action> actions_;
  /// After stopping: start again.
  bool is_wanted_ = false;
  /// It is being stopped because it did not become ready.
  bool is_late_ = false;
  unsigned failures_ = 0;
  std::uint64_t spawns_ = 0;
  std::string last_end_;
};

}  // namespace routerd::services
