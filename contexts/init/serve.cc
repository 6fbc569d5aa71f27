#include "contexts/init/serve.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "base/wait_status.h"
#include "contexts/init/jobs.h"
#include "wire/limits.h"

namespace contexts::init {
namespace {

constexpr int kNotFound = 127;
constexpr int kRefused = 126;

wire::NotStarted explain(const Launch& launch) {
  const auto& request = launch.request();
  wire::NotStarted refusal{kRefused, launch.error(), {}};
  const std::string reason = std::strerror(launch.error());
  switch (launch.failed_step()) {
    case SpawnStep::cwd:
      refusal.message = "working directory " + (request.cwd.empty() ? "(deleted)" : request.cwd) +
                        " cannot be entered in the context: " + reason;
      break;
    case SpawnStep::exec:
      if (launch.error() == ENOENT) refusal.exit_code = kNotFound;
      refusal.message =
          request.path + ": " + (launch.error() == ENOENT ? "not found in the context" : reason);
      if (launch.error() == ENOEXEC) refusal.message += " (no '#!' line, or another machine's)";
      break;
    case SpawnStep::credentials:
      refusal.message = request.path + ": cannot become uid " +
                        std::to_string(request.credentials.uid) + ": " + reason;
      break;
    default:
      refusal.message = request.path + ": cannot set up the process: " + reason;
  }
  return refusal;
}

class Spawner {
 public:
  explicit Spawner(int channel) : channel_(channel) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    child_signals_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    (void)base::set_nonblocking(channel_, true);
    watch(channel_, kChannel);
    watch(child_signals_.borrow(), kChildren);
  }

  void run() {
    while (is_open_) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_.borrow(), events, 64, jobs_.enforce_deadlines());
      for (int i = 0; i < count; ++i) take(events[i].data.u64);
      jobs_.release_launches();
    }
  }

 private:
  // epoll tags: job ids start at kFirstJob.
  static constexpr std::uint64_t kChannel = 0;
  static constexpr std::uint64_t kChildren = 1;

  void watch(int fd, std::uint64_t tag) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = tag;
    ::epoll_ctl(epoll_.borrow(), EPOLL_CTL_ADD, fd, &event);
  }

  void take(std::uint64_t tag) {
    if (tag == kChannel) {
      take_orders();
    } else if (tag == kChildren) {
      reap();
    } else if (Job* job = jobs_.find(tag)) {
      take_requester(*job);
    }
  }

  void take_orders() {
    for (;;) {
      auto frame = wire::receive_datagram(channel_);
      if (!frame) {
        // A frame we cannot read is routerd's bug, and it will hear of the missing answer; only a
        // closed channel ends the context.
        is_open_ = frame.error().code != ECONNRESET;
        if (!is_open_) return;
        continue;
      }
      if (!*frame) return;
      obey(std::move(**frame));
    }
  }

  void obey(wire::Frame frame) {
    switch (frame.type) {
      case wire::MessageType::spawn_fds:
        if (auto more = wire::decode<wire::SpawnFds>(frame.payload)) collect(*more, frame);
        break;
      case wire::MessageType::spawn:
        if (auto order = wire::decode<wire::Spawn>(frame.payload)) {
          start(std::move(*order), std::move(frame.fds));
        }
        break;
      case wire::MessageType::list_jobs:
        if (auto ask = wire::decode<wire::ListJobs>(frame.payload)) list(*ask);
        break;
      case wire::MessageType::signal_job:
        if (auto order = wire::decode<wire::SignalJob>(frame.payload)) signal(*order);
        break;
      default:
        break;
    }
  }

  void collect(const wire::SpawnFds& more, wire::Frame& frame) {
    if (more.job != collected_job_) collected_.clear();
    collected_job_ = more.job;
    if (collected_.size() > wire::kMaxPassedFds) return;
    for (auto& fd : frame.fds) collected_.push_back(std::move(fd));
  }

  void start(wire::Spawn order, std::vector<base::UniqueFd> fds) {
    if (collected_job_ == order.job) {
      for (auto& fd : fds) collected_.push_back(std::move(fd));
      fds = std::move(collected_);
    }
    collected_.clear();
    collected_job_ = 0;
    if (fds.empty()) return;
    auto job = std::make_unique<Job>();
    job->id = order.job;
    job->connection = std::move(fds.front());
    fds.erase(fds.begin());
    if (fds.size() != order.request.fd_numbers.size()) {
      return refuse(*job, {kRefused, EBADMSG, "descriptors were lost on the way to the context"});
    }
    const auto& policy = order.request.policy;
    job->program = order.request.path;
    job->started_ms = now_ms();
    job->on_disconnect = order.request.on_disconnect;
    job->on_stub_kill = order.request.on_stub_kill;
    job->kill_grace_ms = policy.kill_grace_ms;
    if (policy.time_limit_ms != 0) job->deadline_ms = job->started_ms + policy.time_limit_ms;
    run(std::move(job), std::move(order.request), std::move(fds));
  }

  void run(std::unique_ptr<Job> job, wire::ExecRequest request, std::vector<base::UniqueFd> fds) {
    job->launch = std::make_unique<Launch>(std::move(request), std::move(fds));
    if (jobs_.is_full()) {
      return refuse(*job, {kRefused, EAGAIN, job->program + ": too many jobs in this context"});
    }
    Job& running = jobs_.add(std::move(job));
    auto pid = running.launch->start();
    if (!pid) {
      refuse(running, {kRefused, pid.error().code, running.program + ": " + pid.error().message()});
      return jobs_.remove(&running);
    }
    running.pid = *pid;
    tell(running, wire::Started{running.id, *pid});
    watch(running.connection.borrow(), running.id);
  }

  template <class Message>
  void tell(const Job& job, const Message& message) {
    if (job.connection) {
      (void)wire::send_message(job.connection.borrow(), message, {}, MSG_DONTWAIT);
    }
  }
  void refuse(const Job& job, const wire::NotStarted& refusal) { tell(job, refusal); }

  // Signals and resizes for the job; or its end, when the requester has gone.
  void take_requester(Job& job) {
    for (;;) {
      auto frame = job.receiver.receive(job.connection.borrow());
      if (!frame) return disconnect(job);
      if (!*frame) return;
      if ((*frame)->type != wire::MessageType::signal) continue;
      if (auto signal = wire::decode<wire::Signal>((*frame)->payload)) job.send_signal(*signal);
    }
  }

  void disconnect(Job& job) {
    ::epoll_ctl(epoll_.borrow(), EPOLL_CTL_DEL, job.connection.borrow(), nullptr);
    job.connection.reset();
    if (job.on_disconnect == wire::OnDisconnect::keep) return;
    job.send_signal({SIGKILL, job.on_stub_kill});
  }

  void reap() {
    signalfd_siginfo info;
    while (::read(child_signals_.borrow(), &info, sizeof info) == sizeof info) {
    }
    // One SIGCHLD may stand for many children (signal(7)).
    for (;;) {
      int status = 0;
      rusage usage{};
      const int pid = ::wait4(-1, &status, WNOHANG | WUNTRACED | WCONTINUED, &usage);
      if (pid <= 0) return;
      if (Job* job = jobs_.find_pid(pid)) report(*job, base::WaitStatus(status), usage);
    }
  }

  void report(Job& job, base::WaitStatus status, const rusage& usage) {
    if (const auto signal = status.stop_signal()) return tell(job, wire::Stopped{*signal});
    if (status.is_continued()) return tell(job, wire::Continued{});
    if (job.launch && job.launch->error() != 0) {
      refuse(job, explain(*job.launch));
    } else {
      tell(job,
           wire::Exited{status.raw(), microseconds(usage.ru_utime), microseconds(usage.ru_stime),
                        static_cast<std::uint64_t>(usage.ru_maxrss), job.timed_out});
    }
    jobs_.remove(&job);
  }

  static std::uint64_t microseconds(const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_usec);
  }

  void list(const wire::ListJobs& ask) {
    wire::JobList reply{ask.serial, {}};
    for (const auto& job : jobs_.all()) {
      reply.jobs.push_back({job->id, job->pid, now_ms() - job->started_ms, job->program});
    }
    (void)wire::send_datagram(channel_, wire::MessageType::job_list, wire::encode(reply));
  }

  void signal(const wire::SignalJob& order) {
    for (const auto& job : jobs_.all()) {
      if (order.job == 0 || order.job == job->id) job->send_signal(order.signal);
    }
  }

  int channel_;
  base::UniqueFd epoll_;
  base::UniqueFd child_signals_;
  JobTable jobs_;
  std::vector<base::UniqueFd> collected_;
  std::uint64_t collected_job_ = 0;
  bool is_open_ = true;
};

}  // namespace

void serve(int channel) { Spawner(channel).run(); }

}  // namespace contexts::init
