#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/shell/command.h"
#include "contexts/shell/engine.h"
#include "contexts/shell/pending.h"
#include "wire/fds_ahead.h"

namespace contexts::shell {

struct HostOptions {
  const char* bash;
  const char* loadable;
  /// bash/receiver.c, for a bash that the loadable does not fit.
  const char* receiver;
  /// routerd wants a JobEnded for each command that has run, a JobRefused for each that will not.
  bool reports_jobs = false;
};

/// A shell host's life: takes commands as Spawn messages on `channel` (SEQPACKET, borrowed), runs
/// them one after the other in one shell, and answers each requester on its own connection, as a
/// context's spawner does. A requester that leaves ends its command.
///
/// This process makes itself a child subreaper (prctl(2)), so that the ends of all shells,
/// checkpoints and orphans are known here. It has no other children.
class Host {
 public:
  Host(int channel, const HostOptions& options);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Returns when routerd has closed the channel, or after a reset.
  void run();

 private:
  // host.cc: what routerd and requesters send.
  void watch(int fd, std::uint64_t tag, std::uint32_t also = 0);
  void take(std::uint64_t tag);
  void obey(const wire::Frame& frame, std::vector<base::UniqueFd> fds);
  void obey(const wire::ShellOrder& order);
  void enqueue(wire::Spawn order, std::vector<base::UniqueFd> fds);
  void remember(const wire::ShellUpdate& update);
  wire::ShellState state(std::uint64_t serial) const;
  void take_requester(Command& command);
  void disconnect(Command& command);
  void cancel(Command& command);
  Command* find(std::uint64_t job);
  Command* running() const;

  // host_run.cc: the shell and the command that runs.
  void start_next();
  void start_shell();
  base::Result<std::unique_ptr<Engine>> make_engine() const;
  void shell_did_not_start();
  void take_reports();
  void take_report(const Report& report);
  void command_started(Command& command, const Report& report);
  void command_done(Command& command, const Report& report);
  void command_refused(Command& command, const Report& report);
  wire::Exited ended(const Command& command, int wait_status) const;
  void tell_end(const Command& command, const wire::Exited& exited) const;
  void give_up(const Command& command, int error, const std::string& why) const;
  void tell_refusal(const Command& command, const wire::NotStarted& refusal) const;
  void take_signals();
  void reap_all();
  void shell_ended();
  void shell_ended_before(Command& command);
  void command_ended(Command& command);
  void taken_over(Command& command, int pid);
  void end_shell();
  void forget_shell();
  void finish_front();

  // host_end.cc: signals, time limits and resets.
  std::vector<int> started_by(const Command& command) const;
  void signal(Command& command, int number);
  void end_now(Command& command);
  void take_steps();
  void take_step(Command& command, std::uint64_t now);
  int ms_to_next_step() const;
  void reset(wire::ShellState& state);

  int channel_;
  HostOptions options_;
  base::UniqueFd epoll_;
  base::UniqueFd signals_;
  bool is_open_ = true;

  /// Of the context, as routerd told it last: what a fresh shell starts with.
  std::vector<std::string> env_;
  std::string folder_;
  /// What the running shell has not been told yet, and what it is being told with this command.
  Pending pending_;
  Pending told_;
  wire::FdsAhead ahead_;
  std::deque<std::unique_ptr<Command>> queue_;

  std::unique_ptr<Engine> engine_;
  /// Which one is taken; the lower only if the higher has never worked here.
  wire::ShellEngine kind_ = wire::ShellEngine::builtin;
  bool has_worked_ = false;
  /// Why no higher one is.
  std::string why_not_;
  bool is_ready_ = false;
  /// It has been killed and nobody has heard of its end yet.
  bool is_ending_ = false;
  std::optional<int> shell_status_;
  /// Of commands before the running one.
  std::vector<int> background_;
  std::string last_folder_;
  /// Milliseconds of CLOCK_MONOTONIC, 0 = none.
  std::uint64_t ready_deadline_ms_ = 0;
  std::uint64_t takeover_deadline_ms_ = 0;
  std::uint64_t silence_deadline_ms_ = 0;
};

}  // namespace contexts::shell
