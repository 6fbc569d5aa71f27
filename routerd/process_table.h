#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <vector>

namespace routerd {

/// The processes that there are, and who started whom, as /proc told at one moment. They may end,
/// and start others, at any time.
class ProcessTable {
 public:
  /// Reads all of /proc: about 10 µs per process.
  static ProcessTable read();
  /// Pure, for tests: child to parent.
  explicit ProcessTable(std::map<pid_t, pid_t> parents) : parents_(std::move(parents)) {}

  /// The nearest of `pids` that `pid` is or comes from; 0 if it comes from none of them.
  pid_t nearest(pid_t pid, const std::set<pid_t>& pids) const;
  pid_t parent_of(pid_t pid) const;
  const std::map<pid_t, pid_t>& parents() const& { return parents_; }
  const std::map<pid_t, pid_t>& parents() const&& = delete;

 private:
  std::map<pid_t, pid_t> parents_;
};

/// Which sockets of `inodes` `pid` has open (proc(5)). EACCES, EPERM: it may not be looked into;
/// ENOENT: it has ended.
struct HeldSockets {
  std::set<ino_t> inodes;
  int error = 0;
};
HeldSockets sockets_held_by(pid_t pid, const std::set<ino_t>& inodes);

/// `pid` as the innermost PID namespace that it is in knows it; itself if that cannot be told.
pid_t inner_pid(pid_t pid);

}  // namespace routerd
