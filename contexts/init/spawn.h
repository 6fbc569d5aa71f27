#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/init/agent_wall.h"
#include "wire/message.h"

namespace contexts::init {

/// Which step of a spawn failed; the wording of the refusal depends on it.
enum class SpawnStep : int {
  none,
  descriptors,
  session,
  terminal,
  confinement,
  credentials,
  cwd,
  exec
};

/// One program on its way to execve(2): all memory its child reads. The child shares this
/// process's memory (CLONE_VM) while this process runs on, so nothing here may change or be freed
/// before is_released().
class Launch {
 public:
  /// `fds[i]` becomes number request.fd_numbers[i]; sizes match, numbers are unique.
  /// The program joins process group `group` of this session, or leads its own if that is 0.
  Launch(wire::ExecRequest request, std::vector<base::UniqueFd> fds, int group,
         AgentWall wall = {});
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Starts the child and returns its pid at once, before it has exec'ed. EAGAIN: no process, or
  /// no memory for its stack.
  base::Result<int> start();

  /// True when the child has exec'ed or ended.
  bool is_released() const;
  /// It has memory of its own: is_released() only tells when it has ended.
  bool is_apart() const { return wall_.is_built_apart(); }

  /// After the child's end: what kept it from exec'ing (step none: it did exec). `error` is errno.
  SpawnStep failed_step() const { return failure_->step; }
  int error() const { return failure_->error; }
  /// For the requester; the child has told it on the program's stderr already, if it had one.
  wire::NotStarted refusal() const;
  const wire::ExecRequest& request() const { return request_; }

 private:
  struct Placement {
    int source;
    int target;
    bool must_move;
  };

  /// Written by the child.
  struct Failure {
    int error = 0;
    SpawnStep step = SpawnStep::none;
    bool is_told = false;
  };

  base::Result<int> start_beside();
  base::Result<int> start_apart();
  void tell_user();
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
  long exec_by_fd();
  void plan_placements();
  void plan_candidates();
  void plan_listen_pid();
  void write_listen_pid();

  wire::ExecRequest request_;
  int group_;
  std::string oom_score_adj_;
  std::vector<base::UniqueFd> fds_;
  AgentWall wall_;
  std::vector<Placement> placements_;
  int highest_target_ = 2;
  std::vector<std::string> candidates_;
  std::vector<char*> argv_;
  std::vector<char*> env_;
  std::vector<char*> shell_argv_;
  /// "LISTEN_PID=" and room for a pid, in env_ if the request asks for it.
  char listen_pid_[32] = "LISTEN_PID=";
  void* stack_ = nullptr;
  int busy_ = 0;
  Failure own_failure_;
  /// own_failure_, or memory shared with a child that has a copy of everything else.
  Failure* failure_ = &own_failure_;
};

/// This process's own state; what a request has in common with it need not be set again.
const wire::ProcessState& own_state();

}  // namespace contexts::init
