#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/message.h"

namespace contexts {

/// What a context may take of the machine. 0: as much as there is.
struct Limits {
  /// Processes and threads at a time, in the whole context.
  std::uint64_t pids = 0;
  /// Bytes, in the whole context.
  std::uint64_t memory = 0;
  /// CPU time per time, in hundredths of a CPU.
  std::uint64_t cpu_hundredths = 0;
  /// Descriptors of one process.
  std::uint64_t open_files = 0;
  /// Bytes of each tmpfs that is the context's own, /dev/shm first of all.
  std::uint64_t tmpfs = 0;
  /// Wall-clock time of one exec, in ms; then SIGTERM, and SIGKILL a grace later.
  std::uint64_t exec_time_ms = 0;
  bool operator==(const Limits&) const = default;
};

/// Smaller ones are refused: an init, a spawner and a shell need about this much.
constexpr std::uint64_t kLeastPids = 8;
constexpr std::uint64_t kLeastMemory = 8 << 20;
constexpr std::uint64_t kLeastOpenFiles = 16;
constexpr std::uint64_t kLeastTmpfs = 64 << 10;

/// A limit and what makes the kernel keep it.
struct KeptLimit {
  /// As in the configuration: "pids", "memory", "cpu", "open_files", "tmpfs", "exec_time".
  std::string name;
  /// In the unit of Limits.
  std::uint64_t value = 0;
  /// "cgroup v1", "cgroup v2", "pid_max of its PID namespace", …
  std::string by;
};

/// Lowers soft and hard limits of `state` to `caps`; of a resource it does not mention it gets the
/// cap. Never raises one.
void lower_rlimits(wire::ProcessState& state, const std::vector<wire::Rlimit>& caps);

/// The largest pid of a namespace in which at most about `pids` processes live: the kernel gives
/// numbers below 300 only once (RESERVED_PIDS, kernel/pid.c), so they are counted on top.
std::uint32_t pid_max_for(std::uint64_t pids);

}  // namespace contexts
