#pragma once

#include <cstdint>
#include <vector>

namespace contexts::shell {

/// One line of the process table: proc_pid_stat(5).
struct Process {
  int pid = 0;
  int parent = 0;
  /// Has ended and is not reaped yet.
  bool is_zombie = false;
  /// Since boot, in clock ticks (10 ms).
  std::uint64_t start_ticks = 0;
};

/// The processes of this PID namespace. Blocking; reads /proc.
std::vector<Process> list_processes();

/// Pids of those whose parent is `pid`, without zombies. Blocking; reads /proc.
std::vector<int> children_of(int pid);

/// Clock ticks since boot, now: never more than the start of a process that is started later.
std::uint64_t ticks_now();

/// Everything below `pid`, without zombies.
std::vector<int> descendants(const std::vector<Process>& all, int pid);

/// What a command started: processes not older than it that descend from `shell`, or from `host`,
/// to whom orphans come, through none that is older. So a job that an earlier command left in the
/// background is not among them, nor what that job starts. The shell itself is not either, nor
/// `spared` and what descends from those: for what is known to be older although it began in the
/// same tick.
std::vector<int> started_since(const std::vector<Process>& all, int host, int shell,
                               const std::vector<int>& spared, std::uint64_t ticks);

}  // namespace contexts::shell
