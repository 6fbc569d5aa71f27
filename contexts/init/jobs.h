#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "contexts/init/spawn.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace contexts::init {

/// Milliseconds of CLOCK_MONOTONIC.
std::uint64_t now_ms();

/// One running program and the connection to whoever asked for it.
struct Job {
  std::uint64_t id = 0;
  int pid = -1;
  base::UniqueFd connection;
  wire::Receiver receiver;
  /// Until the child has exec'ed; see Launch.
  std::unique_ptr<Launch> launch;
  std::string program;
  std::uint64_t started_ms = 0;
  wire::OnDisconnect on_disconnect = wire::OnDisconnect::kill_group;
  wire::KillScope on_stub_kill = wire::KillScope::group;
  /// Next point in time limits act, 0 = none; first SIGTERM, then SIGKILL.
  std::uint64_t deadline_ms = 0;
  std::uint64_t kill_grace_ms = 0;
  bool timed_out = false;

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
