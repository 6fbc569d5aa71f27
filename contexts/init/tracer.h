#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "contexts/init/traced_exec.h"

namespace contexts::init {

/// Routes the execs of a program that no library can be loaded into: each execve(2) and execveat(2)
/// of it, its threads and its descendants (trace_execs()) stops here and becomes an exec of the
/// stub; those of the stub itself, which runs nothing but what the router told it, pass.
///
/// A tracee that changes the path between this look and the kernel's gets what it asked for, but
/// not past this: the new program is compared with what was decided, before its first instruction,
/// and killed if it is another. If this process dies, so do all tracees (PTRACE_O_EXITKILL).
class Tracer {
 public:
  /// `stub`: absolute path of the stub as the tracees see it, at most PATH_MAX bytes.
  explicit Tracer(std::string stub) : stub_(std::move(stub)), stub_id_(file_id(stub_.c_str())) {}

  /// Begins with `program`, a process about to exec what is to be traced (beside.h). 0 or an errno.
  int seize(pid_t program, int socket);

  /// Until the last tracee has ended. Blocks; to be called with all signals blocked.
  void run();

 private:
  /// What a process runs, by what its execs are.
  enum class Image { starter, stub, program };
  /// What the exec under way may turn a process into.
  enum class Expected { nothing, stub, anything };

  struct Task {
    pid_t id = -1;
    Image image = Image::program;
    Expected expected = Expected::nothing;
    /// Where the stub's path lies in its memory; 0 = nowhere.
    std::uintptr_t stub_path = 0;
    std::string target;
    /// The registers before they were rewritten, to be restored if the exec fails.
    Registers original;
    bool is_rewritten = false;
    /// Stopped at its start, before its parent has told of it.
    bool is_waiting = false;
    bool is_adopted = false;
  };

  Task* find(pid_t id);
  Task& add(pid_t id);
  void remove(pid_t id);
  void release_orphans();
  void take_stop(pid_t id, int status);
  void take_start(pid_t id, int signal);
  void adopt(pid_t parent);
  void take_call(Task& task);
  bool rewrite(Task& task, Registers registers);
  static bool refuse(pid_t id, Registers registers);
  void take_exec(pid_t id);
  bool settle(Task& task);
  static void restore(Task& task);

  std::string stub_;
  FileId stub_id_;
  std::vector<Task> tasks_;
};

}  // namespace contexts::init
