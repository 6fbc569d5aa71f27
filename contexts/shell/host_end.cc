// How commands are ended: by signals, time limits, and the reset of their shell.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "contexts/init/jobs.h"
#include "contexts/shell/answers.h"
#include "contexts/shell/host.h"
#include "contexts/shell/processes.h"

namespace contexts::shell {

using init::now_ms;

namespace {

/// How long a reset goes on killing what comes after.
constexpr std::uint64_t kResetMs = 2000;
/// How often what a command goes on starting is killed before its shell is.
constexpr int kMostKills = 3;

}  // namespace

std::vector<int> Host::started_by(const Command& command) const {
  std::vector<int> spared = background_;
  spared.push_back(command.checkpoint);
  return started_since(list_processes(), ::getpid(), command.shell, spared, command.started_ticks);
}

/// Ctrl-C reaches the shell too, so that a loop ends and not only what it runs; if the shell's
/// state would be lost by that, only the second one does. Anything else reaches what the command
/// started, or the shell if that is nothing.
void Host::signal(Command& command, int number) {
  if (number < 1 || number > 64) return;
  if (number == SIGKILL) return end_now(command);
  const auto pids = started_by(command);
  const bool is_again = number == SIGINT && std::exchange(command.is_interrupted, true);
  if (number == SIGINT && (command.checkpoint != 0 || is_again || pids.empty())) {
    // All at once, as from a terminal: a shell that sees its program end first starts the next.
    ::kill(-::getpgid(command.shell), SIGINT);
    return;
  }
  for (const int pid : pids) ::kill(pid, number);
  if (pids.empty()) ::kill(command.shell, number);
}

/// Nothing the command started may go on. The shell itself has a moment to notice.
void Host::end_now(Command& command) {
  for (const int pid : started_by(command)) ::kill(pid, SIGKILL);
  command.ending = Command::Ending::killed;
  command.deadline_ms = now_ms() + kNoticeMs;
}

void Host::take_steps() {
  const std::uint64_t now = now_ms();
  for (auto* deadline : {&ready_deadline_ms_, &silence_deadline_ms_}) {
    if (*deadline == 0 || now < *deadline) continue;
    *deadline = 0;
    end_shell();
  }
  if (takeover_deadline_ms_ != 0 && now >= takeover_deadline_ms_) shell_ended();
  Command* command = running();
  if (command != nullptr && command->deadline_ms != 0 && now >= command->deadline_ms) {
    take_step(*command, now);
  }
}

void Host::take_step(Command& command, std::uint64_t now) {
  switch (command.ending) {
    case Command::Ending::none:
      command.timed_out = true;
      command.ending = Command::Ending::asked;
      command.deadline_ms = now + command.request.policy.kill_grace_ms;
      for (const int pid : started_by(command)) ::kill(pid, SIGTERM);
      return;
    case Command::Ending::asked:
      return end_now(command);
    case Command::Ending::killed: {
      // It still runs. What it has started meanwhile may have been its last; else it is a loop of
      // builtins, or one that goes on starting others.
      const auto started = started_by(command);
      for (const int pid : started) ::kill(pid, SIGKILL);
      if (!started.empty() && ++command.kills < kMostKills) {
        command.deadline_ms = now + kNoticeMs;
        return;
      }
      command.deadline_ms = 0;
      return end_shell();
    }
  }
}

int Host::ms_to_next_step() const {
  std::uint64_t next = 0;
  const Command* command = running();
  for (const std::uint64_t deadline : {ready_deadline_ms_, takeover_deadline_ms_,
                                       silence_deadline_ms_, command ? command->deadline_ms : 0}) {
    if (deadline != 0 && (next == 0 || deadline < next)) next = deadline;
  }
  if (next == 0) return -1;
  const std::uint64_t now = now_ms();
  constexpr std::uint64_t kLongestWait = 3'600'000;
  return static_cast<int>(std::min(next > now ? next - now : 0, kLongestWait));
}

/// Blocks until all are dead, for kResetMs at most: this host has nothing else to do any more.
void Host::reset(wire::ShellState& state) {
  is_open_ = false;
  const std::uint64_t until = now_ms() + kResetMs;
  std::vector<int> left = descendants(list_processes(), ::getpid());
  while (!left.empty() && now_ms() < until) {
    for (const int pid : left) state.reached += ::kill(pid, SIGKILL) == 0 ? 1 : 0;
    ::poll(nullptr, 0, 1);
    reap_all();
    left = descendants(list_processes(), ::getpid());
  }
  state.survivors = static_cast<std::uint32_t>(left.size());
  for (const auto& command : queue_) {
    if (command->is_running) {
      wire::Exited exited = ended(*command, SIGKILL);
      exited.shell.event = wire::ShellEvent::lost;
      tell_end(*command, exited);
    } else {
      give_up(*command, ECANCELED, "the shell was reset");
    }
  }
  queue_.clear();
}

}  // namespace contexts::shell
