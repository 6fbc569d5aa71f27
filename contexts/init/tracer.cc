#include "contexts/init/tracer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "contexts/init/tracee_memory.h"
#include "wire/called.h"
#include "wire/seizing.h"

namespace contexts::init {
namespace {

constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEEXEC |
                          PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                          PTRACE_O_TRACESYSGOOD;

long trace(long request, pid_t tracee, long data = 0) {
  return ::syscall(SYS_ptrace, request, tracee, 0, data);
}

// A tracee may have been killed meanwhile; its end is reported by the next wait.
void resume(pid_t tracee, int signal = 0) { trace(PTRACE_CONT, tracee, signal); }

pid_t event_message(pid_t tracee) {
  unsigned long message = 0;
  trace(PTRACE_GETEVENTMSG, tracee, reinterpret_cast<long>(&message));
  return static_cast<pid_t>(message);
}

/// proc(5); 0 if the process is gone.
pid_t parent_of(pid_t id) {
  const auto stat = base::read_file("/proc/" + std::to_string(id) + "/stat");
  const auto name_end = stat ? stat->rfind(") ") : std::string::npos;
  return name_end == std::string::npos ? 0 : std::atoi(stat->c_str() + name_end + 4);
}

bool is_stop_signal(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

Tracer::Task* Tracer::find(pid_t id) {
  const auto found =
      std::find_if(tasks_.begin(), tasks_.end(), [id](const Task& task) { return task.id == id; });
  return found == tasks_.end() ? nullptr : &*found;
}

Tracer::Task& Tracer::add(pid_t id) {
  Task task;
  task.id = id;
  tasks_.push_back(std::move(task));
  return tasks_.back();
}

void Tracer::remove(pid_t id) {
  Task* task = find(id);
  if (task == nullptr) return;
  if (task != &tasks_.back()) std::swap(*task, tasks_.back());
  tasks_.pop_back();
}

int Tracer::seize(pid_t program, int socket) {
  if (const int error = wire::seize(program, kOptions, socket); error != 0) return error;
  Task& task = add(program);
  task.image = Image::starter;
  task.is_adopted = true;
  return 0;
}

void Tracer::run() {
  for (;;) {
    int status = 0;
    const pid_t id = ::waitpid(-1, &status, __WALL);
    if (id < 0 && errno == EINTR) continue;
    if (id < 0) return;
    if (WIFSTOPPED(status)) {
      take_stop(id, status);
    } else {
      remove(id);
      release_orphans();
    }
  }
}

// The parent of a task that waits was killed before it could tell of it. Nothing is known of the
// task's memory, so its execs will be refused.
void Tracer::release_orphans() {
  for (Task& task : tasks_) {
    if (!task.is_waiting || find(parent_of(task.id)) != nullptr) continue;
    task.is_waiting = false;
    task.is_adopted = true;
    resume(task.id);
  }
}

void Tracer::take_stop(pid_t id, int status) {
  const int signal = WSTOPSIG(status);
  switch (status >> 16) {
    case PTRACE_EVENT_STOP:
      return take_start(id, signal);
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      adopt(id);
      return resume(id);
    case PTRACE_EVENT_SECCOMP:
      if (Task* task = find(id)) return take_call(*task);
      return resume(id);
    case PTRACE_EVENT_EXEC:
      return take_exec(id);
    default:
      break;
  }
  Task* task = find(id);
  if (signal == (SIGTRAP | 0x80)) {  // the end of an exec that failed
    if (task != nullptr) restore(*task);
    return resume(id);
  }
  resume(id, signal);
}

// A group stop, which lasts until SIGCONT; or the first stop of a new task, which must not run
// before its parent's stop has told whose child it is.
void Tracer::take_start(pid_t id, int signal) {
  if (is_stop_signal(signal)) {
    trace(PTRACE_LISTEN, id);
    return;
  }
  Task* task = find(id);
  if (task == nullptr) task = &add(id);
  if (task->is_adopted) return resume(id);
  task->is_waiting = true;
}

/// A child has its parent's memory, shared or copied, so what lies in it lies at the same place.
void Tracer::adopt(pid_t parent) {
  const pid_t id = event_message(parent);
  if (id <= 0) return;
  if (find(id) == nullptr) add(id);
  Task& child = *find(id);
  child.is_adopted = true;
  if (const Task* from = find(parent)) {
    child.image = from->image;
    child.stub_path = from->stub_path;
  }
  if (child.is_waiting) resume(id);
  child.is_waiting = false;
}

void Tracer::take_call(Task& task) {
  Registers registers;
  if (!registers.read_from(task.id)) return;
  task.expected = Expected::nothing;
  if (task.image != Image::program) {
    task.expected = Expected::anything;
    return resume(task.id);
  }
  TracedExec exec = look_at_exec(task.id, registers, stub_id_);
  switch (exec.fate) {
    case TracedExec::Fate::fails:
      return resume(task.id);
    case TracedExec::Fate::stub:
      task.expected = Expected::stub;
      task.target.clear();
      return resume(task.id);
    case TracedExec::Fate::runs:
      task.target = std::move(exec.target);
      if (rewrite(task, registers)) {
        // To its end, not to the next stop: a program may rely on its registers if the exec fails.
        trace(PTRACE_SYSCALL, task.id);
        return;
      }
      break;
    case TracedExec::Fate::unnameable:
      break;
  }
  refuse(task.id, registers);
  resume(task.id);
}

/// Makes the system call execve(STUB, argv, envp), with the caller's own argv and envp.
bool Tracer::rewrite(Task& task, Registers registers) {
  std::string found;
  if (task.stub_path == 0 || !read_string(task.id, task.stub_path, stub_.size() + 1, found) ||
      found != stub_) {
    return false;
  }
  task.original = registers;
  if (registers.number() == SYS_execveat) {
    registers.set_argument(1, registers.argument(2));
    registers.set_argument(2, registers.argument(3));
    registers.set_number(SYS_execve);
  }
  registers.set_argument(0, task.stub_path);
  task.is_rewritten = registers.write_to(task.id);
  task.expected = Expected::stub;
  return task.is_rewritten;
}

/// The call returns EACCES without being made.
bool Tracer::refuse(pid_t id, Registers registers) {
  registers.set_number(-1);
  registers.set_result(-EACCES);
  return registers.write_to(id);
}

void Tracer::restore(Task& task) {
  Registers registers;
  if (!task.is_rewritten || !registers.read_from(task.id)) return;
  registers.take_arguments(task.original);
  registers.write_to(task.id);
  task.is_rewritten = false;
}

// The other threads are gone; the one that exec'ed has the main thread's number now.
void Tracer::take_exec(pid_t id) {
  const pid_t former = event_message(id);
  if (former > 0 && former != id) {
    remove(id);
    if (Task* task = find(former)) task->id = id;
  }
  Task* task = find(id);
  if (task == nullptr || !settle(*task)) {
    ::kill(id, SIGKILL);
    return;
  }
  resume(id);
}

/// Before its first instruction: is this what was decided? Then prepares its memory.
bool Tracer::settle(Task& task) {
  const Expected expected = std::exchange(task.expected, Expected::nothing);
  task.is_rewritten = false;
  const std::string link = "/proc/" + std::to_string(task.id) + "/exe";
  const bool is_stub = file_id(link.c_str()) == stub_id_;
  if (is_stub && expected != Expected::nothing) {
    task.image = Image::stub;
    task.stub_path = 0;
    return task.target.empty() || leave_string(task.id, task.target, wire::kTracedTarget) != 0;
  }
  if (expected != Expected::anything) return false;
  task.image = Image::program;
  task.stub_path = leave_string(task.id, stub_, 0);
  return task.stub_path != 0;
}

}  // namespace contexts::init
