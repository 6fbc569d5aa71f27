// airlock-stub: what is exec'ed in place of a routed program. It tells the router what was to be
// exec'ed (called.h), hands over its descriptors, forwards signals, and ends as the program ended.
//
// It never runs the program itself unless the router says "here", and never without an answer.

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/exit_like.h"
#include "base/file.h"
#include "preload/stub/called.h"
#include "preload/stub/group_witness.h"
#include "preload/stub/own_namespaces.h"
#include "preload/stub/stop_watch.h"
#include "wire/channel.h"
#include "wire/limits.h"
#include "wire/requester.h"

extern char** environ;

namespace {

constexpr int kRefused = 126;
constexpr int kLost = 125;
/// Bytes that fit a new socket's buffer whatever the reader does (SO_SNDBUF is 208 KiB, socket(7)).
constexpr std::size_t kNeverBlocks = 64 << 10;

/// Where error lines go after fd 2 was given away. A pipe must not be held open for that (its
/// reader waits for the last writer), so for one it is an O_PATH descriptor, reopened when needed.
class ErrorOutput {
 public:
  void keep() {
    struct stat info {};
    if (::fstat(STDERR_FILENO, &info) != 0) return;
    is_path_ = S_ISFIFO(info.st_mode);
    fd_.reset(is_path_ ? ::open("/proc/self/fd/2", O_PATH | O_CLOEXEC)
                       : ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  }

  void say(const std::string& text) const {
    const std::string line = "airlock: " + text + "\n";
    base::UniqueFd reopened;
    int target = STDERR_FILENO;
    if (fd_ && is_path_) {
      const std::string path = "/proc/self/fd/" + std::to_string(fd_.borrow());
      reopened.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
      target = reopened.borrow();
    } else if (fd_) {
      target = fd_.borrow();
    }
    (void)base::write_all(target, line);
  }

 private:
  base::UniqueFd fd_;
  bool is_path_ = false;
};

/// What the stub has while the program runs, and what becomes the program's alone once it does.
struct Passed {
  std::vector<int> fds;
  std::vector<wire::IntervalTimer> timers;
  ErrorOutput errors;
  /// The connection.
  int router = -1;
  GroupWitness witness;
  StopWatch stop_watch{witness};

  void run_long() {
    witness.start();
    stop_watch.start(router);
  }

  // A copy of a pipe here would hold it open, and a timer would expire twice.
  void give_up() {
    errors.keep();
    for (const int fd : fds) ::close(fd);
    for (const auto& timer : timers) {
      const itimerval off{};
      ::setitimer(static_cast<int>(timer.which), &off, nullptr);
    }
  }
};

/// A terminal's signals go to a group; for others the witness knows. In the short time before there
/// is one, a stub that leads a group stands for all of it.
wire::KillScope scope_of(GroupWitness& witness, const signalfd_siginfo& info) {
  if (info.ssi_code == SI_KERNEL) return wire::KillScope::group;
  const bool is_for_all = witness.is_running() ? witness.has_seen(static_cast<int>(info.ssi_signo))
                                               : ::getpgrp() == ::getpid();
  return is_for_all ? wire::KillScope::group : wire::KillScope::process;
}

[[noreturn]] void fail(const ErrorOutput& errors, int code, const std::string& why) {
  errors.say(why);
  _exit(code);
}

std::string current_folder() {
  char folder[PATH_MAX];
  // The raw system call answers "(unreachable)…" for a folder outside the root: not a path.
  if (::getcwd(folder, sizeof folder) == nullptr || folder[0] != '/') return {};
  return folder;
}

wire::ExecRequest describe(const stub::Called& called, const std::vector<int>& fds) {
  wire::ExecRequest request;
  request.path = called.target;
  for (char** word = called.argv; *word != nullptr; ++word) request.argv.add(*word);
  for (char** entry = environ; *entry != nullptr; ++entry) request.env.add(*entry);
  request.cwd = current_folder();
  request.state = wire::capture_process_state();
  request.fd_numbers.assign(fds.begin(), fds.end());
  request.caught_by = called.by;
  request.script = called.script;
  return request;
}

/// The agent's own re-exec: becomes the program, with the environment entries the router added.
[[noreturn]] void run_here(const ErrorOutput& errors, const stub::Called& called,
                           const wire::RunHere& order, int socket, std::uint64_t blocked) {
  std::vector<std::string> added = order.env.strings();
  std::vector<char*> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool is_replaced = false;
    for (const auto& extra : added) {
      is_replaced |= std::string_view(*entry).starts_with(extra.substr(0, extra.find('=') + 1));
    }
    if (!is_replaced) env.push_back(*entry);
  }
  for (auto& extra : added) env.push_back(extra.data());
  env.push_back(nullptr);
  if (order.in_own_namespaces) {
    auto entered = stub::enter_own_namespaces(socket);
    if (!entered) fail(errors, kRefused, order.path + ": " + entered.error().message());
  }
  if (called.program_fd >= 0) ::fcntl(called.program_fd, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, sizeof blocked);
  if (called.is_target_fd()) {
    ::syscall(SYS_execveat, called.program_fd, "", called.argv, env.data(), AT_EMPTY_PATH);
  } else if (order.program_fd >= 0) {
    ::syscall(SYS_execveat, order.program_fd, "", called.argv, env.data(), AT_EMPTY_PATH);
  } else {
    ::execve(order.path.c_str(), called.argv, env.data());
  }
  const int error = errno;
  fail(errors, error == ENOENT ? 127 : kRefused, order.path + ": " + std::strerror(error));
}

base::Result<base::UniqueFd> connect_to_router(const std::string& folder) {
  auto socket = wire::connect_to(folder + "/router.sock");
  // Where 0, 1 or 2 were closed the socket sits there now; error lines must not go into it.
  if (socket && socket->borrow() < 3) return base::duplicate(socket->borrow());
  return socket;
}

[[noreturn]] void end_as(const wire::Outcome& outcome, const stub::Called& called,
                         const ErrorOutput& errors, int socket, std::uint64_t blocked) {
  if (const auto* exited = std::get_if<wire::Exited>(&outcome)) {
    base::exit_like(base::WaitStatus(exited->wait_status));
  }
  if (const auto* refusal = std::get_if<wire::NotStarted>(&outcome)) {
    if (refusal->is_told) _exit(refusal->exit_code);
    fail(errors, refusal->exit_code, refusal->message);
  }
  if (const auto* here = std::get_if<wire::RunHere>(&outcome)) {
    run_here(errors, called, *here, socket, blocked);
  }
  const auto& lost = std::get<wire::Lost>(outcome);
  if (lost.started) {
    fail(errors, kLost,
         "lost " + called.target + ": its context or the daemon ended (" + lost.why + ")");
  }
  fail(errors, kRefused, called.target + " was not started: " + lost.why);
}

}  // namespace

int main(int argc, char** argv) {
  Passed passed;
  const auto called = stub::how_called(argc, argv);
  if (!called) {
    fail(passed.errors, kRefused,
         "airlock-stub stands in for routed programs and is not meant to be run by hand; "
         "use 'airlock run' or 'airlock exec'");
  }
  passed.fds = base::open_fds();
  if (!called->is_target_fd()) std::erase(passed.fds, called->program_fd);
  // All is ready before the connection: a router that is woken by it finds the request there.
  auto request = describe(*called, passed.fds);
  passed.timers = request.state.timers;
  const auto terminal = wire::Relay::offer(request);
  const std::string payload = wire::encode(request);
  const std::uint64_t blocked_before = wire::hold_signals();
  const auto socket = connect_to_router(called->folder);
  if (!socket) {
    fail(passed.errors, kRefused,
         request.path + " was not started: router unreachable: " + socket.error().message());
  }
  if (payload.size() > kNeverBlocks) {
    const timeval patience{wire::kAnswerDeadlineMs / 1000, 0};
    ::setsockopt(socket->borrow(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  auto sent =
      wire::send_frame(socket->borrow(), wire::MessageType::exec_request, payload, passed.fds);
  if (!sent) {
    fail(passed.errors, kRefused, request.path + " was not started: " + sent.error().message());
  }
  passed.router = socket->borrow();
  const auto outcome =
      wire::attend(socket->borrow(),
                   {.blocked_before = blocked_before,
                    .on_started = [](void* given) { static_cast<Passed*>(given)->give_up(); },
                    .on_long_run = [](void* given) { static_cast<Passed*>(given)->run_long(); },
                    .scope_of =
                        [](void* given, const signalfd_siginfo& info) {
                          auto& ours = *static_cast<Passed*>(given);
                          if (info.ssi_signo == SIGCONT) ours.stop_watch.take_hold();
                          return scope_of(ours.witness, info);
                        },
                    .on_stopped =
                        [](void* given, int signal) {
                          return static_cast<Passed*>(given)->stop_watch.is_new(signal);
                        },
                    .on_continued =
                        [](void* given) {
                          auto& watch = static_cast<Passed*>(given)->stop_watch;
                          watch.forget();
                          watch.take_hold();
                        },
                    .argument = &passed,
                    .already_sent = request.state.pending_signals,
                    .terminal = terminal.get()});
  passed.stop_watch.stop();
  passed.witness.stop();
  end_as(outcome, *called, passed.errors, socket->borrow(), blocked_before);
}
