#include "api/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "api/exec_streams.h"
#include "api/job_socket.h"
#include "base/file.h"
#include "base/hex.h"

namespace api {

using Wait = boost::asio::posix::stream_descriptor;

namespace {

constexpr std::size_t kMostPerTurn = 256u << 10;
/// A program that has written so much gets a larger pipe, so that it and we are woken less often.
/// Not all do from the beginning: there is a limit to what the pipes of one user may take (pipe(7),
/// pipe-user-pages-soft).
constexpr std::uint64_t kMuchOutput = 1u << 20;
constexpr int kLargePipe = 256 << 10;
constexpr std::chrono::milliseconds kRetryPause{5};
constexpr int kMostRetries = 400;  // 2 s for the rest of a frame

base::Result<std::array<OutputLog, Exec::kStreams>> make_logs(std::uint64_t keeps) {
  auto out = OutputLog::create(keeps);
  if (!out) return tl::unexpected<base::Error>(out.error());
  auto err = OutputLog::create(keeps);
  if (!err) return tl::unexpected<base::Error>(err.error());
  return std::array<OutputLog, Exec::kStreams>{std::move(*out), std::move(*err)};
}

/// Copies of descriptors, for the daemon to keep.
class KeptCopies {
 public:
  void add(const char* name, int fd) {
    if (fd < 0) return;
    base::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return;
    names.add(name);
    fds.push_back(std::move(copy));
  }
  wire::StringList names;
  std::vector<base::UniqueFd> fds;
};

}  // namespace

std::string make_id(const std::string& prefix) {
  std::array<std::uint8_t, 16> bytes{};
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
  }
  return prefix + base::hex(bytes);
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

Exec::Exec(ExecHost& host, ExecFacts facts, std::array<OutputLog, kStreams> logs)
    : host_(host), facts_(std::move(facts)), logs_(std::move(logs)), retry_(host.io) {}

base::Result<std::shared_ptr<Exec>> Exec::start(ExecHost& host, const ExecOrder& order,
                                                const std::string& context) {
  auto streams = make_streams(order);
  if (!streams) return tl::unexpected<base::Error>(streams.error());
  auto logs = make_logs(order.max_bytes);
  if (!logs) return tl::unexpected<base::Error>(logs.error());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return base::os_error("make a job's socket");
  }
  base::UniqueFd job(ends[0]);
  base::UniqueFd theirs(ends[1]);
  std::shared_ptr<Exec> exec(
      new Exec(host, facts_of(order, make_id("exec_"), context, now_ms()), std::move(*logs)));
  wire::ExecRequest request = to_request(order, context, host.new_shell);
  const bool is_leader = request.state.session_leader;
  request.state = host.state;
  request.state.session_leader = is_leader;

  KeptCopies kept;
  kept.add("job", job.borrow());
  kept.add("stdin", streams->input.borrow());
  kept.add("stdout", streams->out.borrow());
  kept.add("stderr", streams->err.borrow());
  kept.add("stdout.log", exec->logs_[out].file());
  kept.add("stderr.log", exec->logs_[err].file());
  std::vector<base::UniqueFd> fds = std::move(streams->theirs);
  fds.push_back(std::move(theirs));
  for (auto& fd : kept.fds) fds.push_back(std::move(fd));
  DaemonClient::announce(host.daemon.jobs(), order.asked_by, exec->facts_.id);
  host.daemon.jobs().send(wire::KeptExec{exec->facts_.id, to_note(exec->facts_),
                                         std::move(kept.names), wire::encode(request)},
                          std::move(fds));
  exec->set_source(out, std::move(streams->out));
  exec->set_source(err, std::move(streams->err));
  exec->set_input(std::move(streams->input));
  exec->begin(std::move(job));
  return exec;
}

base::Result<std::shared_ptr<Exec>> Exec::adopt(ExecHost& host, const wire::Attached& left,
                                                std::vector<base::UniqueFd> fds) {
  auto facts = read_note(left.note);
  if (!facts || fds.size() != left.streams.count()) {
    return base::failure("take up a kept job", EBADMSG);
  }
  std::map<std::string, base::UniqueFd, std::less<>> named;
  const auto names = left.streams.strings();
  for (std::size_t i = 0; i < names.size(); ++i) named[names[i]] = std::move(fds[i]);
  auto out_log = OutputLog::adopt(std::move(named["stdout.log"]), facts->max_bytes);
  if (!out_log) return tl::unexpected<base::Error>(out_log.error());
  auto err_log = OutputLog::adopt(std::move(named["stderr.log"]), facts->max_bytes);
  if (!err_log) return tl::unexpected<base::Error>(err_log.error());
  std::shared_ptr<Exec> exec(
      new Exec(host, std::move(*facts), {std::move(*out_log), std::move(*err_log)}));
  if (exec->facts_.has_terminal) {
    if (auto second = base::duplicate(named["tty"].borrow())) exec->set_input(std::move(*second));
    exec->set_source(out, std::move(named["tty"]));
  } else {
    exec->set_source(out, std::move(named["stdout"]));
    exec->set_source(err, std::move(named["stderr"]));
    exec->set_input(std::move(named["stdin"]));
  }
  if (!exec->has_ended()) exec->begin(std::move(named["job"]));
  return exec;
}

// ---- the job ----

void Exec::begin(base::UniqueFd job) {
  (void)base::set_nonblocking(job.borrow(), true);
  job_.emplace(host_.io, job.release());
  await_job();
}

void Exec::await_job() {
  job_->async_wait(Wait::wait_read, [weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (self && !error) self->take_job();
  });
}

void Exec::take_job() {
  while (job_) {
    auto frame = peek_frame(job_->native_handle());
    if (frame && !*frame) return await_job();
    if (!frame && frame.error().code == EINPROGRESS && ++retries_ < kMostRetries) {
      retry_.expires_after(kRetryPause);
      return retry_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto self = weak.lock();
        if (self && !error) self->take_job();
      });
    }
    retries_ = 0;
    if (!frame) {
      facts_.is_lost = true;
      return end();
    }
    const bool is_last = obey(std::move(**frame));
    // What is noted first and taken away then is never lost, whenever this process dies.
    if (job_) (void)drop_frame(job_->native_handle());
    if (is_last) return end();
  }
}

/// True if it was the last one.
bool Exec::obey(wire::Frame frame) {
  if (frame.type == wire::MessageType::queued) {
    if (auto queued = wire::decode<wire::Queued>(frame.payload)) facts_.job = queued->job;
    facts_.is_queued = true;
    keep_note();
    notify();
    return false;
  }
  if (frame.type == wire::MessageType::started) {
    if (auto started = wire::decode<wire::Started>(frame.payload)) {
      facts_.pid = started->pid;
      facts_.job = started->job;
    }
    facts_.begun_ms = now_ms();
    facts_.is_queued = false;
    if (!facts_.has_terminal || frame.fds.empty()) {
      keep_note();
      notify();
      return false;
    }
    std::vector<base::UniqueFd> kept;
    if (auto copy = base::duplicate(frame.fds.front().borrow())) kept.push_back(std::move(*copy));
    keep_note(std::move(kept));
    if (auto copy = base::duplicate(frame.fds.front().borrow())) set_input(std::move(*copy));
    set_source(out, std::move(frame.fds.front()));
    if (wanted_size_) (void)resize(*wanted_size_);
    notify();
    return false;
  }
  if (frame.type == wire::MessageType::exited) {
    if (auto exited = wire::decode<wire::Exited>(frame.payload)) facts_.exited = std::move(*exited);
  } else if (frame.type == wire::MessageType::not_started) {
    if (auto told = wire::decode<wire::NotStarted>(frame.payload)) facts_.not_started = *told;
  }
  if (!facts_.has_ended()) return false;
  drain();
  facts_.ended_ms = now_ms();
  keep_note();
  return true;
}

void Exec::end() {
  const auto self = shared_from_this();
  if (facts_.ended_ms == 0) {
    drain();
    facts_.ended_ms = now_ms();
    keep_note();
  }
  job_.reset();
  close_input();
  if (facts_.not_started) sources_ = {};
  host_.on_ended(facts_);
  notify();
}

void Exec::keep_note(std::vector<base::UniqueFd> fds) {
  wire::KeepNote note{facts_.id, to_note(facts_)};
  if (!fds.empty()) note.streams.add("tty");
  host_.daemon.jobs().send(note, std::move(fds));
}

bool Exec::signal(int number, wire::KillScope scope) {
  if (has_ended() || !job_) return false;
  return wire::send_message(job_->native_handle(), wire::Signal{number, scope}, {}, MSG_DONTWAIT)
      .has_value();
}

bool Exec::resize(wire::Winsize size) {
  if (!facts_.has_terminal || has_ended()) return false;
  if (facts_.pid == 0) wanted_size_ = size;
  if (!sources_[out]) return wanted_size_.has_value();
  const winsize kernel{size.rows, size.columns, 0, 0};
  return ::ioctl(sources_[out]->native_handle(), TIOCSWINSZ, &kernel) == 0;
}

std::optional<wire::Winsize> Exec::size() {
  winsize kernel{};
  if (!facts_.has_terminal || !sources_[out] ||
      ::ioctl(sources_[out]->native_handle(), TIOCGWINSZ, &kernel) != 0) {
    return std::nullopt;
  }
  return wire::Winsize{kernel.ws_row, kernel.ws_col, 0, 0};
}

void Exec::release() {
  host_.daemon.jobs().send(wire::Release{facts_.id});
  job_.reset();
  sources_ = {};
  input_.reset();
  subscribers_.clear();
}

// ---- output ----

void Exec::set_source(Stream stream, base::UniqueFd fd) {
  if (!fd) return;
  (void)base::set_nonblocking(fd.borrow(), true);
  sources_[stream].emplace(host_.io, fd.release());
  await_output(stream);
}

void Exec::await_output(Stream stream) {
  if (!sources_[stream]) return;
  sources_[stream]->async_wait(Wait::wait_read,
                               [weak = weak_from_this(), stream](boost::system::error_code error) {
                                 const auto self = weak.lock();
                                 if (self && !error) self->take_output(stream);
                               });
}

// What the slowest reader has not taken yet.
std::uint64_t Exec::held_from(Stream stream) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto& [number, offsets] : readers_) least = std::min(least, offsets[stream]);
  return least;
}

std::uint64_t Exec::room(Stream stream) const {
  if (readers_.empty()) return kMostPerTurn;
  const std::uint64_t limit = held_from(stream) + kWindow;
  return limit - std::min(limit, logs_[stream].end());
}

void Exec::take_output(Stream stream) {
  if (!sources_[stream]) return;
  const std::uint64_t left = room(stream);
  is_paused_[stream] = left == 0;
  if (left == 0) return;  // set_reader() goes on
  auto moved = logs_[stream].fill(sources_[stream]->native_handle(),
                                  std::min<std::uint64_t>(left, kMostPerTurn));
  if (!moved) sources_[stream].reset();
  if (moved && logs_[stream].end() > kMuchOutput && !std::exchange(has_large_pipe_[stream], true)) {
    (void)::fcntl(sources_[stream]->native_handle(), F_SETPIPE_SZ, kLargePipe);
  }
  await_output(stream);
  notify();
}

// What it wrote before its end is in the pipe by now; what others go on writing is not waited for.
void Exec::drain() {
  for (const Stream stream : {out, err}) {
    int waiting = 0;
    if (!sources_[stream]) continue;
    // A terminal's output is on its way until somebody looks (n_tty_poll, drivers/tty/n_tty.c).
    pollfd readable{sources_[stream]->native_handle(), POLLIN, 0};
    (void)::poll(&readable, 1, 0);
    if (::ioctl(sources_[stream]->native_handle(), FIONREAD, &waiting) != 0) continue;
    while (waiting > 0) {
      auto moved =
          logs_[stream].fill(sources_[stream]->native_handle(), static_cast<std::size_t>(waiting));
      if (!moved) sources_[stream].reset();
      if (!moved || *moved == 0) break;
      waiting -= static_cast<int>(*moved);
    }
  }
}

Capture Exec::capture(Stream stream) const {
  const OutputLog& log = logs_[stream];
  Capture captured;
  captured.total = log.end();
  std::uint64_t head = log.end();
  std::uint64_t tail = log.end();
  // More is kept than was asked for, for a while; and then not all of it is told.
  if (log.end() > facts_.max_bytes) {
    head = facts_.max_bytes / 2;
    tail = log.end() - (facts_.max_bytes - head);
  }
  const auto append = [&](std::uint64_t from, std::uint64_t to) {
    while (from < to) {
      const auto part = log.read(from, to - from);
      if (part.empty()) break;
      captured.bytes += part;
      from += part.size();
    }
  };
  append(0, head);
  captured.gap_at = captured.bytes.size();
  append(tail, log.end());
  captured.omitted = captured.total - captured.bytes.size();
  return captured;
}

void Exec::set_reader(std::uint64_t subscription,
                      const std::array<std::uint64_t, kStreams>& offsets) {
  readers_[subscription] = offsets;
  wait_for_readers();
}

void Exec::remove_reader(std::uint64_t subscription) {
  if (readers_.erase(subscription) > 0) wait_for_readers();
}

void Exec::wait_for_readers() {
  for (const Stream stream : {out, err}) {
    logs_[stream].hold_from(held_from(stream));
    if (!is_paused_[stream] || room(stream) == 0) continue;
    is_paused_[stream] = false;
    await_output(stream);
  }
}

std::uint64_t Exec::subscribe(std::function<void()> action) {
  subscribers_.emplace(next_subscriber_, std::move(action));
  return next_subscriber_++;
}

void Exec::notify() {
  const auto self = shared_from_this();
  const auto subscribers = subscribers_;  // they come and go meanwhile
  for (const auto& [number, action] : subscribers) {
    if (subscribers_.contains(number)) action();
  }
}

}  // namespace api
