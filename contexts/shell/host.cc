#include "contexts/shell/host.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "contexts/init/jobs.h"
#include "contexts/shell/answers.h"
#include "wire/limits.h"

namespace contexts::shell {
namespace {

// epoll tags: job ids start at 2.
constexpr std::uint64_t kChannel = 0;
constexpr std::uint64_t kSignals = 1;

/// A command that waits is ended by what its program would be asked to end by; not by SIGWINCH,
/// say.
bool is_to_end(int signal) {
  constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL};
  return std::ranges::find(kEnding, signal) != std::end(kEnding);
}

/// The descriptors of a command in the order 0, 1, 2; empty unless they are just these.
std::vector<base::UniqueFd> in_order(const std::vector<std::uint32_t>& numbers,
                                     std::vector<base::UniqueFd> fds) {
  std::vector<base::UniqueFd> standard(3);
  if (numbers.size() != 3 || fds.size() != 3) return {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (numbers[i] > 2 || standard[numbers[i]]) return {};
    standard[numbers[i]] = std::move(fds[i]);
  }
  return standard;
}

std::string current_folder() {
  char folder[4096];
  return ::getcwd(folder, sizeof folder) != nullptr && folder[0] == '/' ? folder : "/";
}

}  // namespace

Host::Host(int channel, const HostOptions& options)
    : channel_(channel), options_(options), folder_(current_folder()) {
  for (char** entry = environ; *entry != nullptr; ++entry) env_.emplace_back(*entry);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t heard;
  sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  sigaddset(&heard, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &heard, nullptr);
  signals_.reset(::signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  (void)base::set_nonblocking(channel_, true);
  watch(channel_, kChannel);
  watch(signals_.borrow(), kSignals);
}

void Host::run() {
  while (is_open_) {
    epoll_event events[16];
    const int count = ::epoll_wait(epoll_.borrow(), events, 16, ms_to_next_step());
    for (int i = 0; i < count && is_open_; ++i) take(events[i].data.u64);
    take_steps();
  }
}

// Edge-triggered, as copies of a descriptor may outlive ours.
void Host::watch(int fd, std::uint64_t tag, std::uint32_t also) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET | also;
  event.data.u64 = tag;
  ::epoll_ctl(epoll_.borrow(), EPOLL_CTL_ADD, fd, &event);
}

void Host::take(std::uint64_t tag) {
  if (tag == kChannel) {
    const bool is_open =
        wire::take_datagrams(channel_, wire::Unreadable::skip,
                             [this](wire::Frame frame) { obey(frame, std::move(frame.fds)); });
    if (!is_open) is_open_ = false;
  } else if (tag == kSignals) {
    take_signals();
  } else if (tag == kShellTag) {
    take_reports();
  } else if (Command* command = find(tag)) {
    take_requester(*command);
  }
}

Command* Host::find(std::uint64_t job) {
  for (auto& command : queue_) {
    if (command->job == job) return command.get();
  }
  return nullptr;
}

Command* Host::running() const {
  return !queue_.empty() && queue_.front()->is_running ? queue_.front().get() : nullptr;
}

// ---- what routerd sends ----

void Host::obey(const wire::Frame& frame, std::vector<base::UniqueFd> fds) {
  if (frame.type == wire::MessageType::spawn_fds) {
    if (auto more = wire::decode<wire::SpawnFds>(frame.payload))
      ahead_.add(more->job, std::move(fds));
  } else if (frame.type == wire::MessageType::spawn) {
    auto order = wire::decode<wire::Spawn>(frame.payload);
    if (order) enqueue(std::move(*order), std::move(fds));
  } else if (frame.type == wire::MessageType::shell_update) {
    if (auto update = wire::decode<wire::ShellUpdate>(frame.payload)) remember(*update);
  } else if (frame.type == wire::MessageType::shell_order) {
    if (auto order = wire::decode<wire::ShellOrder>(frame.payload)) obey(*order);
  } else if (frame.type == wire::MessageType::signal_job) {
    auto order = wire::decode<wire::SignalJob>(frame.payload);
    Command* command = order ? find(order->job) : nullptr;
    if (command == nullptr) return;
    if (command->is_running) return signal(*command, order->signal.signal);
    cancel(*command);
  }
}

void Host::obey(const wire::ShellOrder& order) {
  wire::ShellState answer = state(order.serial);
  if (order.action == wire::ShellOrder::Action::interrupt && running() != nullptr) {
    answer.reached = 1;
    signal(*running(), SIGINT);
  }
  if (order.action == wire::ShellOrder::Action::reset) reset(answer);
  (void)wire::send_datagram(channel_, wire::MessageType::shell_state, wire::encode(answer));
}

void Host::enqueue(wire::Spawn order, std::vector<base::UniqueFd> fds) {
  fds = ahead_.take(order.job, std::move(fds));
  if (fds.empty()) return;
  auto command = std::make_unique<Command>();
  command->job = order.job;
  command->connection = std::move(fds.back());
  fds.pop_back();
  command->request = std::move(order.request);
  command->standard = in_order(command->request.fd_numbers, std::move(fds));
  if (command->standard.empty() || command->request.argv.count() != 1) {
    return give_up(*command, EINVAL, "a shell takes one command and descriptors 0, 1 and 2");
  }
  if (command->request.policy.shell.fail_if_busy && !queue_.empty()) {
    return give_up(*command, EBUSY,
                   "the shell is busy with job " + std::to_string(queue_.front()->job));
  }
  if (queue_.size() >= wire::kMaxJobsPerContext) {
    return give_up(*command, EAGAIN, "too many commands wait for this shell");
  }
  watch(command->connection.borrow(), command->job);
  if (!queue_.empty()) tell(*command, wire::Queued{command->job});
  queue_.push_back(std::move(command));
  start_next();
}

/// For the shell there is and for those that come after it.
void Host::remember(const wire::ShellUpdate& update) {
  const auto forget = [this](std::string_view name) {
    std::erase_if(
        env_, [name](std::string_view entry) { return entry.substr(0, entry.find('=')) == name; });
  };
  for (const auto entry : update.set.views()) {
    forget(entry.substr(0, entry.find('=')));
    env_.emplace_back(entry);
  }
  for (const auto name : update.unset.views()) forget(name);
  if (!update.cwd.empty()) folder_ = update.cwd;
  pending_.add(update);
}

wire::ShellState Host::state(std::uint64_t serial) const {
  wire::ShellState state;
  state.serial = serial;
  if (engine_ && is_ready_) {
    state.engine = engine_->kind();
    state.pid = engine_->pid();
  }
  state.cwd = pending_.folder().empty() ? last_folder_ : pending_.folder();
  for (const int pid : background_) state.background.push_back(static_cast<std::uint32_t>(pid));
  for (const auto& command : queue_) {
    const std::uint64_t for_ms =
        command->is_running ? init::now_ms() - command->started_ms : std::uint64_t{0};
    state.jobs.push_back({command->job, command->shell, for_ms, "(shell)"});
  }
  return state;
}

// ---- what a requester sends ----

void Host::take_requester(Command& command) {
  for (;;) {
    auto frame = command.receiver.receive(command.connection.borrow());
    if (!frame) return disconnect(command);
    if (!*frame) return;
    if ((*frame)->type != wire::MessageType::signal) continue;
    const auto order = wire::decode<wire::Signal>((*frame)->payload);
    if (!order) continue;
    if (!command.is_running && is_to_end(order->signal)) return cancel(command);
    if (command.is_running) signal(command, order->signal);
  }
}

void Host::disconnect(Command& command) {
  command.connection.reset();
  if (command.request.on_disconnect == wire::OnDisconnect::keep) return;
  if (command.is_running) return end_now(command);
  cancel(command);
}

void Host::cancel(Command& command) {
  give_up(command, ECANCELED, "the command was cancelled before it began");
  std::erase_if(queue_, [&command](const auto& each) { return each.get() == &command; });
}

}  // namespace contexts::shell
