#include "contexts/init/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/raw_syscall.h"
#include "contexts/init/refusal.h"
#include "wire/limits.h"
#include "wire/requester.h"

namespace contexts::init {

using base::raw::call;

namespace {

constexpr std::size_t kStackSize = 32 << 10;

// Stacks are reused: mmap and its page faults would cost more than the clone.
class StackPool {
 public:
  void* take() {
    if (free_.empty()) {
      void* memory = ::mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
      return memory == MAP_FAILED ? nullptr : memory;
    }
    void* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(void* stack) {
    constexpr std::size_t kKept = 64;
    if (free_.size() >= kKept) {
      ::munmap(stack, kStackSize);
    } else {
      free_.push_back(stack);
    }
  }

 private:
  std::vector<void*> free_;
};

StackPool& stacks() {
  static StackPool pool;
  return pool;
}

std::string_view path_variable(const wire::StringList& env) {
  for (const auto entry : env.views()) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return "/bin:/usr/bin";  // execvp(3) without PATH
}

}  // namespace

const wire::ProcessState& own_state() {
  static const wire::ProcessState state = wire::capture_process_state();
  return state;
}

Launch::Launch(wire::ExecRequest request, std::vector<base::UniqueFd> fds, int group,
               AgentWall wall)
    : request_(std::move(request)), group_(group), fds_(std::move(fds)), wall_(std::move(wall)) {
  plan_placements();
  plan_candidates();
  argv_ = request_.argv.pointers();
  env_ = request_.env.pointers();
  plan_listen_pid();
  // Only upwards: to be spared by the OOM killer takes a privilege that requesters may not have.
  const std::int32_t oom_score_adj = request_.state.oom_score_adj;
  if (oom_score_adj > own_state().oom_score_adj) oom_score_adj_ = std::to_string(oom_score_adj);
}

Launch::~Launch() {
  if (stack_ != nullptr) stacks().give_back(stack_);
  if (failure_ != &own_failure_) ::munmap(failure_, sizeof *failure_);
}

void Launch::plan_placements() {
  for (std::size_t i = 0; i < fds_.size(); ++i) {
    const int target = static_cast<int>(request_.fd_numbers[i]);
    placements_.push_back({fds_[i].borrow(), target, false});
    highest_target_ = std::max(highest_target_, target);
  }
  // A received descriptor may sit on another one's number.
  for (auto& placement : placements_) {
    placement.must_move =
        std::any_of(placements_.begin(), placements_.end(), [&placement](const Placement& other) {
          return &other != &placement && other.target == placement.source;
        });
  }
}

void Launch::plan_candidates() {
  const std::string& path = request_.path;
  if (!request_.search_path || path.find('/') != std::string::npos || path.empty()) {
    candidates_.push_back(path);
  } else {
    std::string_view rest = path_variable(request_.env);
    for (bool more = true; more;) {
      const auto colon = rest.find(':');
      const std::string folder(rest.substr(0, colon));
      candidates_.push_back(folder.empty() ? path : folder + "/" + path);
      more = colon != std::string_view::npos;
      if (more) rest.remove_prefix(colon + 1);
    }
  }
  if (request_.search_path) {
    // {"/bin/sh", FILE, arguments after argv[0]…}; FILE is filled in when it is known.
    static char shell[] = "/bin/sh";
    shell_argv_ = {shell, nullptr};
    const auto arguments = request_.argv.pointers();
    for (std::size_t i = 1; i < arguments.size(); ++i) shell_argv_.push_back(arguments[i]);
    if (arguments.size() <= 1) shell_argv_.push_back(nullptr);
  }
}

// sd_listen_fds(3): a program takes its sockets only if this is its own pid.
void Launch::plan_listen_pid() {
  if (!request_.is_service) return;
  for (char*& entry : env_) {
    if (entry != nullptr && std::string_view(entry).starts_with("LISTEN_PID=")) entry = listen_pid_;
  }
}

base::Result<int> Launch::start() {
  return wall_.is_built_apart() ? start_apart() : start_beside();
}

// A wall takes more than raw system calls to build, so its builder gets memory of its own. Only
// agents have one, and few are started.
base::Result<int> Launch::start_apart() {
  void* shared =
      ::mmap(nullptr, sizeof *failure_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return base::failure("allocate memory", EAGAIN);
  failure_ = new (shared) Failure;
  const std::uint64_t before = wire::hold_signals();
  const pid_t pid = ::fork();
  if (pid == 0) child_entry(this);
  const int error = errno;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  if (pid < 0) return base::failure("start a process", error);
  busy_ = 1;  // the failure is wanted when the child has ended
  fds_.clear();
  return pid;
}

base::Result<int> Launch::start_beside() {
  stack_ = stacks().take();
  if (stack_ == nullptr) return base::failure("allocate a stack", EAGAIN);
  busy_ = 1;
  // A signal forwarded before the child has the program's dispositions would end it.
  const std::uint64_t all = ~std::uint64_t{0};
  std::uint64_t before = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  // No CLONE_VFORK: a program that is slow to load must not stop the whole context. Except for one
  // that changes its oom_score_adj: without it that is everybody's who shares the memory
  // (fs/proc/base.c, __set_oom_adj).
  const unsigned long wait = oom_score_adj_.empty() ? 0 : CLONE_VFORK;
  const long pid = base::raw::clone_on_stack(CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD | wait,
                                             static_cast<char*>(stack_) + kStackSize, &busy_,
                                             &Launch::child_entry, this);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before);
  if (pid < 0) {
    busy_ = 0;
    return base::failure("start a process", static_cast<int>(-pid));
  }
  // The child has a descriptor table of its own since the clone; ours must not hold pipes open.
  fds_.clear();
  return static_cast<int>(pid);
}

wire::NotStarted Launch::refusal() const {
  return Refusal(request_, failure_->step, failure_->error).message(failure_->is_told);
}

bool Launch::is_released() const { return __atomic_load_n(&busy_, __ATOMIC_ACQUIRE) == 0; }

// ---- From here on: in the child, beside the running parent. Raw system calls only; no errno, no
// allocation, no libc. Order: docs/ARCHITECTURE.md, "Spawning".

void Launch::child_entry(void* launch) {
  static_cast<Launch*>(launch)->run_child();
  call(SYS_exit_group, 127);
}

void Launch::run_child() {
  const struct {
    SpawnStep step;
    long (*act)(Launch&);
  } steps[] = {
      {SpawnStep::confinement, [](Launch& l) { return l.wall_.build(l.request_.credentials); }},
      {SpawnStep::descriptors, [](Launch& l) { return l.place_descriptors(); }},
      {SpawnStep::session, [](Launch& l) { return l.enter_session(); }},
      {SpawnStep::terminal, [](Launch& l) { return l.take_terminal(); }},
      {SpawnStep::confinement, [](Launch& l) { return l.wall_.enter(); }},
      {SpawnStep::credentials, [](Launch& l) { return l.become_user(); }},
      {SpawnStep::none, [](Launch& l) { return l.restore_limits(), 0L; }},
      {SpawnStep::cwd, [](Launch& l) { return l.enter_folder(); }},
      {SpawnStep::none, [](Launch& l) { return l.restore_signals(), 0L; }},
      {SpawnStep::none, [](Launch& l) { return l.write_listen_pid(), 0L; }},
      {SpawnStep::exec, [](Launch& l) { return l.exec(); }},
  };
  for (const auto& [step, act] : steps) {
    const long result = act(*this);
    if (result >= 0) continue;
    *failure_ = {static_cast<int>(-result), step};
    return tell_user();
  }
}

// By the child, which has the descriptors: once it has ended, nobody may be left to read what a
// requester says into a pipe that was the program's alone.
void Launch::tell_user() {
  const auto& numbers = request_.fd_numbers;
  const bool has_stderr = failure_->step != SpawnStep::descriptors &&
                          std::find(numbers.begin(), numbers.end(), 2u) != numbers.end();
  if (!has_stderr || request_.tty != wire::TtyMode::none) return;
  failure_->is_told = Refusal(request_, failure_->step, failure_->error).write_line(2);
}

namespace {

timeval as_timeval(std::uint64_t microseconds) {
  return {static_cast<time_t>(microseconds / 1'000'000),
          static_cast<suseconds_t>(microseconds % 1'000'000)};
}

}  // namespace

// Everything this process had is close-on-exec, so only the placed ones reach the program.
long Launch::place_descriptors() {
  if (const long moved = wall_.make_way(highest_target_); moved < 0) return moved;
  for (auto& placement : placements_) {
    if (!placement.must_move) continue;
    const long moved = call(SYS_fcntl, placement.source, F_DUPFD_CLOEXEC, highest_target_ + 1);
    if (moved < 0) return moved;
    placement.source = static_cast<int>(moved);
  }
  for (const auto& placement : placements_) {
    // dup3(2) of a number onto itself fails, and dup2 would leave it close-on-exec.
    const long placed = placement.source == placement.target
                            ? call(SYS_fcntl, placement.target, F_SETFD, 0)
                            : call(SYS_dup3, placement.source, placement.target, 0);
    if (placed < 0) return placed;
  }
  return 0;
}

// A session of its own only where the requester led one: else the group stays in this process's
// session and is not orphaned, so terminal stops reach it (setpgid(2)). With a fresh terminal this
// process is a monitor, and its session that terminal's.
long Launch::enter_session() {
  const bool has_monitor = request_.tty == wire::TtyMode::fresh;
  const bool is_leader = request_.state.session_leader || request_.tty == wire::TtyMode::hand_over;
  return is_leader && !has_monitor ? call(SYS_setsid) : call(SYS_setpgid, 0, group_);
}

long Launch::take_terminal() const {
  if (request_.tty == wire::TtyMode::hand_over) {
    // So that the program may open it anew (/dev/stderr). EPERM: it is not ours to give away.
    call(SYS_fchown, request_.tty_fd, request_.credentials.uid, -1);
    return call(SYS_ioctl, request_.tty_fd, TIOCSCTTY, 0);
  }
  if (request_.tty != wire::TtyMode::fresh || !request_.foreground) return 0;
  const int group = group_ != 0 ? group_ : static_cast<int>(call(SYS_getpid));
  return call(SYS_ioctl, request_.tty_fd, TIOCSPGRP, &group);
}

// After the change of user: a requester could ask for more than its user may have. What may not be
// raised stays as it is; EPERM is no failure.
void Launch::restore_limits() const {
  const auto& wanted = request_.state;
  const auto& own = own_state();
  if (wanted.rlimits != own.rlimits) {
    for (const auto& limit : wanted.rlimits) {
      const std::uint64_t values[2] = {limit.soft, limit.hard};
      call(SYS_prlimit64, 0, limit.resource, values, 0);
    }
  }
  if (wanted.nice != own.nice) call(SYS_setpriority, PRIO_PROCESS, 0, wanted.nice);
  if (wanted.io_priority != own.io_priority) call(SYS_ioprio_set, 1, 0, wanted.io_priority);
  if (wanted.affinity != own.affinity && !wanted.affinity.empty()) {
    call(SYS_sched_setaffinity, 0, wanted.affinity.size(), wanted.affinity.data());
  }
  if (wanted.personality != own.personality) call(SYS_personality, wanted.personality);
  // Not the real-time ones: a context's programs may not stop the machine.
  if (wanted.scheduler == SCHED_BATCH || wanted.scheduler == SCHED_IDLE) {
    const int no_priority = 0;
    call(SYS_sched_setscheduler, 0, wanted.scheduler, &no_priority);
  }
  if (wanted.timer_slack_ns != own.timer_slack_ns) {
    call(SYS_prctl, PR_SET_TIMERSLACK, wanted.timer_slack_ns, 0, 0, 0);
  }
  call(SYS_umask, wanted.umask & 0777);
  if (oom_score_adj_.empty()) return;
  const long file = call(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
  if (file < 0) return;
  call(SYS_write, file, oom_score_adj_.data(), oom_score_adj_.size());
  call(SYS_close, file);
}

long Launch::become_user() const {
  const auto& user = request_.credentials;
  // To setresuid(2) this id means "leave it as it is": as root.
  constexpr std::uint32_t kNoId = ~std::uint32_t{0};
  if (user.uid == kNoId || user.gid == kNoId) return -EINVAL;
  const auto uid = static_cast<std::uint32_t>(call(SYS_geteuid));
  const auto gid = static_cast<std::uint32_t>(call(SYS_getegid));
  if (user.uid == uid && user.gid == gid && user.groups.empty()) return 0;
  // In a user namespace with one mapped id setgroups(2) is denied, and there is nothing to change.
  const long groups = call(SYS_setgroups, user.groups.size(), user.groups.data());
  if (groups < 0 && (user.uid != uid || user.gid != gid)) return groups;
  if (const long set = call(SYS_setresgid, user.gid, user.gid, user.gid); set < 0) return set;
  if (const long set = call(SYS_setresuid, user.uid, user.uid, user.uid); set < 0) return set;
  // A change of ids sets dumpable to fs.suid_dumpable (prctl(2)); until the exec this is our
  // memory.
  return call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// By path, in the context; and verified: the folder must be inside the context's root.
long Launch::enter_folder() const {
  if (request_.cwd.empty()) return -ENOENT;
  if (const long entered = call(SYS_chdir, request_.cwd.c_str()); entered < 0) return entered;
  char folder[wire::kMaxPath];
  folder[0] = '\0';
  const long length = call(SYS_getcwd, folder, sizeof folder);
  if (length < 0) return length;
  return folder[0] == '/' ? 0 : -EXDEV;
}

void Launch::restore_signals() const {
  struct {
    std::uintptr_t handler;
    unsigned long flags;
    std::uintptr_t restorer;
    std::uint64_t mask;
  } const ignore{1 /* SIG_IGN */, 0, 0, 0};
  const auto& state = request_.state;
  for (int signal = 1; signal <= 64; ++signal) {
    if ((state.ignored_signals >> (signal - 1) & 1) == 0) continue;
    call(SYS_rt_sigaction, signal, &ignore, 0, sizeof ignore.mask);
  }
  call(SYS_rt_sigprocmask, SIG_SETMASK, &state.blocked_signals, 0, sizeof(std::uint64_t));
  const std::uint64_t pending = state.pending_signals & state.blocked_signals;
  for (int signal = 1; signal <= 64; ++signal) {
    if ((pending >> (signal - 1) & 1) != 0) call(SYS_kill, call(SYS_getpid), signal);
  }
  if (state.no_new_privs) call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (state.child_subreaper) call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (state.parent_death_signal != 0) {
    call(SYS_prctl, PR_SET_PDEATHSIG, state.parent_death_signal, 0, 0, 0);
  }
  for (const auto& timer : state.timers) {
    const itimerval value{as_timeval(timer.interval_us), as_timeval(timer.value_us)};
    call(SYS_setitimer, timer.which, &value, 0);
  }
}

// The very file that was looked into, whatever lies at its path by now.
long Launch::exec_by_fd() {
  return call(SYS_execveat, wall_.program(), "", argv_.data(), env_.data(), AT_EMPTY_PATH);
}

void Launch::write_listen_pid() {
  char digits[24];
  int count = 0;
  for (long pid = call(SYS_getpid); pid > 0; pid /= 10) {
    digits[count++] = static_cast<char>('0' + pid % 10);
  }
  char* end = listen_pid_ + sizeof "LISTEN_PID=" - 1;
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
}

// As execvp(3): the next candidate after ENOENT and ENOTDIR; EACCES is remembered.
long Launch::exec() {
  if (wall_.program() >= 0) return exec_by_fd();
  long worst = -ENOENT;
  for (auto& candidate : candidates_) {
    long result = call(SYS_execve, candidate.c_str(), argv_.data(), env_.data());
    if (result == -ENOEXEC && request_.search_path) {
      shell_argv_[1] = candidate.data();
      result = call(SYS_execve, "/bin/sh", shell_argv_.data(), env_.data());
    }
    if (result == -EACCES) worst = result;
    if (result != -ENOENT && result != -ENOTDIR && result != -EACCES) return result;
  }
  return worst;
}

}  // namespace contexts::init
