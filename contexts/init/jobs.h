#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/init/groups.h"
#include "contexts/init/spawn.h"
#include "contexts/init/terminal_session.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace contexts::init {

/// Milliseconds of CLOCK_MONOTONIC.
std::uint64_t now_ms();

/// One running program and the connection to whoever asked for it.
struct Job {
  std::uint64_t id = 0;
  int pid = -1;
  /// Its process group: pid itself, or one of ProcessGroups.
  int group = -1;
  base::UniqueFd connection;
  wire::Receiver receiver;
  /// Until the child has exec'ed; see Launch.
  std::unique_ptr<Launch> launch;
  /// True until the requester has given its terminal up; `launch` has not started then.
  bool awaits_terminal = false;
  /// For a program on a fresh terminal, instead of `launch`.
  std::unique_ptr<TerminalSession> session;
  std::string program;
  std::uint64_t started_ms = 0;
  wire::OnDisconnect on_disconnect = wire::OnDisconnect::kill_group;
  wire::KillScope on_stub_kill = wire::KillScope::group;
  bool is_service = false;
  /// Next point in time limits act, 0 = none; first SIGTERM, then SIGKILL.
  std::uint64_t deadline_ms = 0;
  std::uint64_t kill_grace_ms = 0;
  bool timed_out = false;

  bool leads_group() const { return group == pid; }
  /// The program has been exec'ed or has ended; before that it is alone in its group, if in it.
  bool has_execed() const { return !launch || launch->is_apart() || launch->is_released(); }
  /// kill(2) of the program or its group.
  void send_signal(const wire::Signal& signal) const;
};

/// The jobs of one context, by job id and by pid.
class JobTable {
 public:
  /// True at wire::kMaxJobsPerContext.
  bool is_full() const;
  Job& add(std::unique_ptr<Job> job);
  Job* find(std::uint64_t id);
  Job* find_pid(int pid);
  /// The job on a fresh terminal whose session `pid` leads.
  Job* find_monitor(int pid);
  void remove(const Job* job);
  const std::vector<std::unique_ptr<Job>>& all() const { return jobs_; }

  /// Frees what children that have exec'ed no longer need.
  void release_launches();
  /// Acts on time limits that have passed; ms until the next one, -1 = none.
  int enforce_deadlines();

 private:
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace contexts::init
