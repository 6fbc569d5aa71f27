#include "ctl/daemon_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace ctl {
namespace {

constexpr int kPassedFd = 3;

/// fork and exec of the daemon with `passed` as descriptor 3, in a session of its own: a terminal's
/// signals are for the program, not for who keeps it.
base::Result<pid_t> spawn_daemon(std::vector<std::string> argv, int passed, int standard_error) {
  std::vector<char*> pointers;
  for (auto& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return base::os_error("fork");
  if (pid > 0) return pid;
  ::setsid();
  if (::fcntl(passed, F_DUPFD, kPassedFd + 1) >= 0) ::dup2(passed, kPassedFd);
  if (passed == kPassedFd) ::fcntl(kPassedFd, F_SETFD, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (standard_error >= 0) ::dup2(standard_error, STDERR_FILENO);
  ::close_range(kPassedFd + 1, ~0u, 0);
  ::execv(pointers[0], pointers.data());
  _exit(127);
}

}  // namespace

std::string daemon_program() {
  auto own = base::read_link("/proc/self/exe");
  const std::string folder = own ? own->substr(0, own->rfind('/')) : ".";
  for (const auto& candidate :
       {folder + "/airlock-routerd", folder + "/../libexec/airlock/airlock-routerd"}) {
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return folder + "/airlock-routerd";
}

base::Result<std::string> daemon_output(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {daemon_program()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& word : argv) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("pipe");
  const base::UniqueFd readable(ends[0]);
  base::UniqueFd writable(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return base::os_error("fork");
  if (pid == 0) {
    ::dup2(writable.borrow(), STDOUT_FILENO);
    ::execv(pointers[0], pointers.data());
    _exit(127);
  }
  writable.reset();
  std::string text;
  char block[4096];
  for (ssize_t n = 1; n > 0 || (n < 0 && errno == EINTR);) {
    n = ::read(readable.borrow(), block, sizeof block);
    if (n > 0) text.append(block, static_cast<std::size_t>(n));
  }
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

base::Result<EmbeddedDaemon> EmbeddedDaemon::start(const std::vector<std::string>& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  base::UniqueFd client(ends[0]);
  const base::UniqueFd passed(ends[1]);
  // As a listener's connections have it: the daemon wants to know who sends (unix(7)).
  const int on = 1;
  if (::setsockopt(passed.borrow(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return base::os_error("SO_PASSCRED");
  }
  std::vector<std::string> argv = {daemon_program(), "--embedded", std::to_string(kPassedFd)};
  argv.insert(argv.end(), options.begin(), options.end());
  auto pid = spawn_daemon(std::move(argv), passed.borrow(), -1);
  if (!pid) return tl::unexpected<base::Error>(pid.error());
  return EmbeddedDaemon(std::move(client), *pid);
}

void EmbeddedDaemon::wait(const std::string& runtime_dir) {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  if (WIFSIGNALED(status) && runtime_dir.size() > 1) {
    std::filesystem::remove_all(runtime_dir, ignored);
  }
}

base::Result<pid_t> start_daemon(const std::vector<std::string>& options,
                                 const std::string& log_file) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("pipe");
  const base::UniqueFd readable(ends[0]);
  base::UniqueFd writable(ends[1]);
  std::vector<std::string> argv = {daemon_program(), "--ready-fd", std::to_string(kPassedFd),
                                   "--log-file", log_file};
  argv.insert(argv.end(), options.begin(), options.end());
  auto pid = spawn_daemon(std::move(argv), writable.borrow(), -1);
  if (!pid) return pid;
  writable.reset();
  char byte = 0;
  if (::read(readable.borrow(), &byte, 1) == 1) return pid;
  int status = 0;
  (void)::waitpid(*pid, &status, 0);
  return base::failure({}, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

}  // namespace ctl
