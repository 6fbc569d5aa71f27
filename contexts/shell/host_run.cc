// The shell of a host, and the command that runs in it.

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "contexts/init/jobs.h"
#include "contexts/shell/answers.h"
#include "contexts/shell/bash.h"
#include "contexts/shell/host.h"
#include "contexts/shell/loop.h"
#include "contexts/shell/plain.h"
#include "contexts/shell/processes.h"

namespace contexts::shell {

using init::now_ms;
using wire::ShellEngine;

namespace {

/// How long a fresh bash may take to be ready, and a copy to take over.
constexpr std::uint64_t kShellPatienceMs = 10'000;
/// How long a plain bash may take for the last word, and nothing else, of what it was told.
constexpr std::uint64_t kLastWordMs = 3000;

}  // namespace

void Host::start_next() {
  if (queue_.empty() || queue_.front()->is_running) return;
  if (!engine_) return start_shell();
  if (!is_ready_ || is_ending_) return;
  Command& command = *queue_.front();
  told_ = std::exchange(pending_, {});
  CommandText text = told_.text();
  text.scoped = command.request.env;
  text.scoped_folder = command.request.cwd;
  text.command = std::string(command.request.argv.views().front());
  text.wants_checkpoint = !command.request.policy.shell.no_checkpoint;
  command.started_ms = now_ms();
  command.started_ticks = ticks_now();
  command.shell = engine_->pid();
  command.is_running = true;
  const auto limit = command.request.policy.time_limit_ms;
  if (limit != 0) command.deadline_ms = command.started_ms + limit;
  // Before the command can kill this process: "not started" would be a lie then.
  tell(command, wire::Started{command.job, command.shell});
  auto sent = engine_->send(text, command.standard);
  command.standard.clear();
  if (sent) return;
  give_up(command, sent.error().code, sent.error().message());
  if (sent.error().code != EINVAL) {
    end_shell();
    is_ending_ = true;  // the next one is not for it
  }
  finish_front();
}

void Host::start_shell() {
  pending_ = {};  // it starts with all of that
  auto made = make_engine();
  if (!made) {
    give_up(*queue_.front(), made.error().code, made.error().message());
    return finish_front();
  }
  engine_ = std::move(*made);
  is_ready_ = false;
  ready_deadline_ms_ = now_ms() + kShellPatienceMs;
  // A loop is told more than a socket holds, and notes when all of it has been taken.
  watch(engine_->socket(), kShellTag, kind_ == ShellEngine::loop ? EPOLLOUT : 0);
}

base::Result<std::unique_ptr<Engine>> Host::make_engine() const {
  if (kind_ == ShellEngine::command) return std::make_unique<PlainShell>(env_, folder_);
  if (kind_ == ShellEngine::loop) {
    return Loop::start(options_.bash, options_.receiver, env_, folder_);
  }
  wire::StringList env;
  for (const auto& entry : env_) env.add(entry);
  return Bash::start(options_.bash, options_.loadable, env, folder_);
}

void Host::take_reports() {
  while (engine_) {
    auto report = engine_->receive();
    if (!report && report.error().code == ECONNRESET) {
      // The shell is about to end, or has closed descriptors it did not know.
      if (!shell_status_) silence_deadline_ms_ = now_ms() + kNoticeMs;
      return;
    }
    if (!report) continue;  // user code holds a copy of the socket: what it says is ignored
    if (!*report) {
      if (engine_->is_deaf() && silence_deadline_ms_ == 0) {
        silence_deadline_ms_ = now_ms() + kLastWordMs;
      }
      return;
    }
    silence_deadline_ms_ = 0;
    take_report(**report);
  }
}

void Host::take_report(const Report& report) {
  if (report.head.kind == kShellReady) {
    is_ready_ = has_worked_ = true;
    ready_deadline_ms_ = 0;
    return start_next();
  }
  Command* command = running();
  if (command == nullptr) return;
  switch (report.head.kind) {
    case kShellStarted:
      return command_started(*command, report);
    case kShellDone:
      return command_done(*command, report);
    case kShellTakeover:
      return taken_over(*command, report.head.pid);
    case kShellRefused:
      return command_refused(*command, report);
    default:
      return;
  }
}

void Host::command_started(Command& command, const Report& report) {
  command.has_begun = true;
  command.checkpoint = report.head.checkpoint_pid;
  command.no_checkpoint = static_cast<ShellNoCheckpoint>(report.head.no_checkpoint);
}

void Host::command_done(Command& command, const Report& report) {
  wire::Exited exited = ended(command, wait_status_of(command, report.head.status));
  exited.user_us = report.head.user_us;
  exited.system_us = report.head.system_us;
  exited.max_rss_kib = report.head.max_rss_kib;
  exited.shell.cwd = last_folder_ = report.folder;
  exited.shell.changed_env = report.changed_names;
  for (const int pid : report.background) {
    const auto known = std::find(background_.begin(), background_.end(), pid);
    if (known == background_.end()) {
      exited.shell.background.push_back(static_cast<std::uint32_t>(pid));
    }
  }
  background_ = report.background;
  tell_end(command, exited);
  finish_front();
}

/// What the context has set and the shell has not taken stays pending, so that no command ever runs
/// in another folder than it should.
void Host::command_refused(Command& command, const Report& report) {
  const bool is_own = report.head.is_scoped_folder != 0;
  give_up(command, report.head.error,
          (is_own ? "working directory " : "the context's working directory ") +
              (is_own ? command.request.cwd : told_.folder()) + ": " +
              std::strerror(report.head.error));
  pending_.add_older(told_);
  finish_front();
}

wire::Exited Host::ended(const Command& command, int wait_status) const {
  wire::Exited exited;
  exited.wait_status = wait_status;
  exited.timed_out = command.timed_out;
  exited.shell.engine = engine_ ? engine_->kind() : ShellEngine::none;
  exited.shell.no_checkpoint = explain(command.no_checkpoint);
  if (command.no_checkpoint == kShellMakesNoCopies) exited.shell.no_checkpoint += why_not_;
  return exited;
}

/// For the audit log, nobody waits: what routerd does not take in time is not told.
void Host::tell_end(const Command& command, const wire::Exited& exited) const {
  tell(command, exited);
  if (!options_.reports_jobs) return;
  (void)wire::send_datagram(
      channel_, wire::MessageType::job_ended,
      wire::encode(wire::JobEnded{command.job, exited.wait_status, exited.user_us, exited.system_us,
                                  exited.max_rss_kib, exited.timed_out}));
}

/// The command is not run. `error` is an errno.
void Host::give_up(const Command& command, int error, const std::string& why) const {
  constexpr int kRefused = 126;
  const auto& name = command.request.policy.shell.name;
  tell_refusal(command, {kRefused, error, "shell '" + name + "': " + why});
}

void Host::tell_refusal(const Command& command, const wire::NotStarted& refusal) const {
  tell(command, refusal);
  if (!options_.reports_jobs) return;
  (void)wire::send_datagram(channel_, wire::MessageType::job_refused,
                            wire::encode(wire::JobRefused{command.job, refusal}));
}

// ---- the end of a shell ----

/// Of children; and of who ends this job, with all that is in it.
void Host::take_signals() {
  signalfd_siginfo info;
  bool is_to_end = false;
  while (::read(signals_.borrow(), &info, sizeof info) == sizeof info) {
    is_to_end |= info.ssi_signo == SIGTERM;
  }
  wire::ShellState state;
  if (is_to_end) return reset(state);
  reap_all();
  if (shell_status_ && engine_) shell_ended();
}

void Host::reap_all() {
  for (;;) {
    int status = 0;
    const int pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (engine_ && pid == engine_->pid()) {
      shell_status_ = status;
      engine_->has_ended();
    }
    Command* command = running();
    if (command != nullptr && pid == command->checkpoint) command->checkpoint = 0;
  }
}

/// The shell is dead; a copy says so itself and has a moment for that.
void Host::shell_ended() {
  Command* command = running();
  if (command != nullptr && engine_->ends_with_command()) return command_ended(*command);
  const bool may_recover = command != nullptr && command->checkpoint != 0;
  if (may_recover && takeover_deadline_ms_ == 0) {
    takeover_deadline_ms_ = now_ms() + kShellPatienceMs;
    return;
  }
  if (may_recover && now_ms() < takeover_deadline_ms_) return;
  if (command == nullptr) return shell_did_not_start();
  if (kind_ == ShellEngine::loop && !command->has_begun) return shell_ended_before(*command);
  wire::Exited exited = ended(*command, shell_status_.value_or(SIGKILL));
  exited.shell.event = wire::ShellEvent::lost;
  forget_shell();
  tell_end(*command, exited);
  finish_front();
}

/// What it was is not the command's doing.
void Host::shell_ended_before(Command& command) {
  forget_shell();
  give_up(command, EIO, "bash ended before the command began; the next one gets a fresh shell");
  finish_front();
}

void Host::command_ended(Command& command) {
  wire::Exited exited = ended(command, *std::exchange(shell_status_, {}));
  exited.shell.cwd = last_folder_ = engine_->folder();
  const auto refusal = engine_->refusal();
  refusal ? tell_refusal(command, *refusal) : tell_end(command, exited);
  finish_front();
}

/// Or was killed between two commands.
void Host::shell_did_not_start() {
  const bool was_ready = is_ready_;
  const std::string complaint = engine_->complaint();
  forget_shell();
  if (was_ready) return start_next();
  if (!has_worked_ && kind_ != ShellEngine::command) {
    const bool is_builtin = kind_ == ShellEngine::builtin;
    why_not_ += is_builtin ? "; it does not fit here: " : "; bash does not work here without: ";
    why_not_ += complaint.empty() ? "bash ended before it was ready" : complaint;
    kind_ = is_builtin ? ShellEngine::loop : ShellEngine::command;
    return start_next();
  }
  if (queue_.empty()) return;
  give_up(*queue_.front(), EIO, "bash did not start, although it has before");
  finish_front();
}

void Host::taken_over(Command& command, int pid) {
  if (pid != command.checkpoint) return;
  int status = 0;
  if (!shell_status_ && ::waitpid(engine_->pid(), &status, 0) > 0) shell_status_ = status;
  wire::Exited exited = ended(command, shell_status_.value_or(SIGKILL));
  exited.shell.event = wire::ShellEvent::recovered;
  engine_->taken_over_by(pid);
  background_.clear();
  shell_status_.reset();
  takeover_deadline_ms_ = 0;
  tell_end(command, exited);
  finish_front();
}

void Host::end_shell() {
  if (engine_) engine_->kill();
}

void Host::forget_shell() {
  engine_.reset();
  is_ready_ = is_ending_ = false;
  background_.clear();
  last_folder_.clear();
  shell_status_.reset();
  takeover_deadline_ms_ = 0;
  ready_deadline_ms_ = 0;
  silence_deadline_ms_ = 0;
}

void Host::finish_front() {
  queue_.pop_front();
  start_next();
}

}  // namespace contexts::shell
