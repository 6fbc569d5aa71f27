// airlock-stub: what is exec'ed in place of a routed program. It tells the router what was to be
// exec'ed, hands over its descriptors, forwards signals, and ends as the program ended.
//
//   airlock-stub exec1 TARGET [ARGV0 [ARG…]]      (preload/README.md)
//
// It never runs the program itself unless the router says "here", and never without an answer.

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/exit_like.h"
#include "base/file.h"
#include "wire/channel.h"
#include "wire/limits.h"
#include "wire/requester.h"

extern char** environ;

namespace {

constexpr int kRefused = 126;
constexpr int kLost = 125;
/// Bytes that fit a new socket's buffer whatever the reader does (SO_SNDBUF is 208 KiB, socket(7)).
constexpr std::size_t kNeverBlocks = 64 << 10;
constexpr const char* kProtocol = "exec1";
constexpr int kFirstArgument = 3;

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

struct PassedFds {
  std::vector<int> numbers;
  ErrorOutput errors;

  // Once the program runs they are its alone: a copy here would hold pipes open.
  void close_all() {
    errors.keep();
    for (const int fd : numbers) ::close(fd);
  }
};

[[noreturn]] void fail(const ErrorOutput& errors, int code, const std::string& why) {
  errors.say(why);
  _exit(code);
}

/// The folder this program was exec'ed from: the interposer names it in full. Called by another
/// name (a link), the kernel knows the file.
std::string own_folder() {
  const auto* called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  const std::string_view name = called != nullptr ? called : "";
  constexpr std::string_view kName = "/airlock-stub";
  if (name.starts_with('/') && name.ends_with(kName)) {
    return std::string(name.substr(0, name.size() - kName.size()));
  }
  auto path = base::read_link("/proc/self/exe");
  if (!path) return {};
  return path->substr(0, path->rfind('/'));
}

std::string current_folder() {
  char folder[PATH_MAX];
  // The raw system call answers "(unreachable)…" for a folder outside the root: not a path.
  if (::getcwd(folder, sizeof folder) == nullptr || folder[0] != '/') return {};
  return folder;
}

wire::ExecRequest describe(int argc, char** argv, const std::vector<int>& fds) {
  wire::ExecRequest request;
  request.path = argv[kFirstArgument - 1];
  for (int i = kFirstArgument; i < argc; ++i) request.argv.add(argv[i]);
  for (char** entry = environ; *entry != nullptr; ++entry) request.env.add(*entry);
  request.cwd = current_folder();
  request.state = wire::capture_process_state();
  request.fd_numbers.assign(fds.begin(), fds.end());
  return request;
}

/// The agent's own re-exec: becomes the program, with the environment entries the router added.
[[noreturn]] void run_here(const ErrorOutput& errors, char** argv, const wire::RunHere& order,
                           std::uint64_t blocked) {
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
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, sizeof blocked);
  ::execve(order.path.c_str(), argv + kFirstArgument, env.data());
  const int error = errno;
  fail(errors, error == ENOENT ? 127 : kRefused, order.path + ": " + std::strerror(error));
}

base::Result<base::UniqueFd> connect_to_router(const std::string& folder) {
  auto socket = wire::connect_to(folder + "/router.sock");
  // Where 0, 1 or 2 were closed the socket sits there now; error lines must not go into it.
  if (socket && socket->borrow() < 3) return base::duplicate(socket->borrow());
  return socket;
}

[[noreturn]] void end_as(const wire::Outcome& outcome, char** argv, const ErrorOutput& errors,
                         std::uint64_t blocked) {
  if (const auto* exited = std::get_if<wire::Exited>(&outcome)) {
    base::exit_like(base::WaitStatus(exited->wait_status));
  }
  if (const auto* refusal = std::get_if<wire::NotStarted>(&outcome)) {
    fail(errors, refusal->exit_code, refusal->message);
  }
  if (const auto* here = std::get_if<wire::RunHere>(&outcome))
    run_here(errors, argv, *here, blocked);
  const auto& lost = std::get<wire::Lost>(outcome);
  const std::string name = argv[kFirstArgument - 1];
  if (lost.started) {
    fail(errors, kLost, "lost " + name + ": its context or the daemon ended (" + lost.why + ")");
  }
  fail(errors, kRefused, name + " was not started: " + lost.why);
}

}  // namespace

int main(int argc, char** argv) {
  PassedFds passed;
  if (argc < kFirstArgument || std::string_view(argv[1]) != kProtocol) {
    fail(passed.errors, kRefused,
         "airlock-stub stands in for routed programs and is not meant to be run by hand; "
         "use 'airlock run' or 'airlock exec'");
  }
  passed.numbers = base::open_fds();
  // All is ready before the connection: a router that is woken by it finds the request there.
  const auto request = describe(argc, argv, passed.numbers);
  const std::string payload = wire::encode(request);
  const std::uint64_t blocked_before = wire::hold_signals();
  const auto socket = connect_to_router(own_folder());
  if (!socket) {
    fail(passed.errors, kRefused,
         request.path + " was not started: router unreachable: " + socket.error().message());
  }
  if (payload.size() > kNeverBlocks) {
    const timeval patience{wire::kAnswerDeadlineMs / 1000, 0};
    ::setsockopt(socket->borrow(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  auto sent =
      wire::send_frame(socket->borrow(), wire::MessageType::exec_request, payload, passed.numbers);
  if (!sent) {
    fail(passed.errors, kRefused, request.path + " was not started: " + sent.error().message());
  }
  const auto outcome = wire::attend(
      socket->borrow(), {.blocked_before = blocked_before,
                         .on_started = [](void* fds) { static_cast<PassedFds*>(fds)->close_all(); },
                         .argument = &passed,
                         .already_sent = request.state.pending_signals});
  end_as(outcome, argv, passed.errors, blocked_before);
}
