#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "wire/limits.h"

namespace wire {

/// The descriptors of a job that came ahead of its Spawn, in SpawnFds messages. Those of a job
/// whose Spawn never came are closed when another job's come.
class FdsAhead {
 public:
  void add(std::uint64_t job, std::vector<base::UniqueFd> fds) {
    if (job != job_) fds_.clear();
    job_ = job;
    if (fds_.size() > kMaxPassedFds) return;
    fds_.insert(fds_.end(), std::make_move_iterator(fds.begin()),
                std::make_move_iterator(fds.end()));
  }

  /// All of `job`: what came ahead, then `last`.
  std::vector<base::UniqueFd> take(std::uint64_t job, std::vector<base::UniqueFd> last) {
    add(job, std::move(last));
    job_ = 0;
    return std::exchange(fds_, {});
  }

 private:
  std::uint64_t job_ = 0;
  std::vector<base::UniqueFd> fds_;
};

}  // namespace wire
