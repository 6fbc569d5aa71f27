#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/message.h"

namespace contexts::init {

/// Which step of a spawn failed; the wording of the refusal depends on it.
enum class SpawnStep : int { none, descriptors, session, terminal, credentials, cwd, exec };

/// One program on its way to execve(2): all memory its child reads. The child shares this
/// process's memory (CLONE_VM) while this process runs on, so nothing here may change or be freed
/// before is_released().
class Launch {
 public:
  /// `fds[i]` becomes number request.fd_numbers[i]; sizes match, numbers are unique.
  Launch(wire::ExecRequest request, std::vector<base::UniqueFd> fds);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Starts the child and returns its pid at once, before it has exec'ed. EAGAIN: no process, or
  /// no memory for its stack.
  base::Result<int> start();

  /// True when the child has exec'ed or ended.
  bool is_released() const;

  /// After the child's end: what kept it from exec'ing (step none: it did exec). `error` is errno.
  SpawnStep failed_step() const { return step_; }
  int error() const { return error_; }
  const wire::ExecRequest& request() const { return request_; }

 private:
  struct Placement {
    int source;
    int target;
    bool must_move;
  };

  static void child_entry(void* launch);
  void run_child();
  long place_descriptors();
  long enter_session();
  long take_terminal() const;
  long become_user() const;
  long enter_folder() const;
  void restore_limits() const;
  void restore_signals() const;
  long exec();
  void plan_placements();
  void plan_candidates();

  wire::ExecRequest request_;
  std::vector<base::UniqueFd> fds_;
  std::vector<Placement> placements_;
  int highest_target_ = 2;
  std::vector<std::string> candidates_;
  std::vector<char*> argv_;
  std::vector<char*> env_;
  std::vector<char*> shell_argv_;
  void* stack_ = nullptr;
  int busy_ = 0;
  int error_ = 0;
  SpawnStep step_ = SpawnStep::none;
};

/// This process's own state; what a request has in common with it need not be set again.
const wire::ProcessState& own_state();

}  // namespace contexts::init
