#include "ctl/exec_client.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/wait_status.h"
#include "wire/channel.h"
#include "wire/requester.h"

extern char** environ;

namespace ctl {

wire::ExecRequest make_request(const std::vector<std::string>& argv, const std::vector<int>& fds) {
  wire::ExecRequest request;
  request.path = argv.front();
  for (const auto& word : argv) request.argv.add(word);
  for (char** entry = environ; *entry != nullptr; ++entry) request.env.add(*entry);
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof folder) != nullptr && folder[0] == '/') request.cwd = folder;
  request.fd_numbers.assign(fds.begin(), fds.end());
  request.search_path = true;
  request.state = wire::capture_process_state();
  return request;
}

namespace {

void give_up_fds(void* argument) {
  const auto& fds = *static_cast<const std::vector<int>*>(argument);
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : fds) {
    if (fd == STDERR_FILENO) continue;  // for our own last words
    if (fd <= STDERR_FILENO) {
      ::dup2(null.borrow(), fd);
    } else {
      ::close(fd);
    }
  }
}

}  // namespace

wire::Outcome attend_request(int socket, wire::ExecRequest request, const std::vector<int>& fds,
                             TerminalWish wish) {
  const auto terminal =
      wish == TerminalWish::always ? wire::Relay::force(request) : wire::Relay::offer(request);
  // A person's terminal stays a person's: it is never handed over.
  if (terminal) request.tty = wire::TtyMode::fresh;
  const std::uint64_t blocked_before = wire::hold_signals();
  auto sent = wire::send_message(socket, request, fds);
  if (!sent) return wire::Lost{false, sent.error().message()};
  auto passed = fds;
  return wire::attend(socket, {.blocked_before = blocked_before,
                               .on_started = give_up_fds,
                               .argument = &passed,
                               .already_sent = request.state.pending_signals,
                               .terminal = terminal.get()});
}

Ending ending_of(const wire::Outcome& outcome, const std::string& program) {
  if (const auto* exited = std::get_if<wire::Exited>(&outcome)) {
    if (!exited->timed_out) return {exited->wait_status, {}};
    return {base::WaitStatus::from_exit_code(kTimedOut).raw(), program + " timed out"};
  }
  if (const auto* refusal = std::get_if<wire::NotStarted>(&outcome)) {
    return {base::WaitStatus::from_exit_code(refusal->exit_code).raw(),
            refusal->is_told ? std::string() : refusal->message};
  }
  const auto* lost = std::get_if<wire::Lost>(&outcome);
  const bool has_started = lost != nullptr && lost->started;
  return {
      base::WaitStatus::from_exit_code(has_started ? kLost : kRefused).raw(),
      has_started
          ? "lost " + program + ": its context or the daemon ended"
          : program + " was not started: " + (lost != nullptr ? lost->why : "unexpected answer")};
}

Ending run_request(int socket, wire::ExecRequest request, const std::vector<int>& fds,
                   TerminalWish wish) {
  const std::string program = request.path;
  return ending_of(attend_request(socket, std::move(request), fds, wish), program);
}

}  // namespace ctl
