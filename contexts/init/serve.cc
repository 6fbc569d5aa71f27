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
#include "contexts/init/binfmt_again.h"
#include "contexts/init/jobs.h"
#include "contexts/init/refusal.h"
#include "wire/fds_ahead.h"
#include "wire/limits.h"
#include "wire/requester.h"

namespace contexts::init {
namespace {

constexpr int kRefused = 126;

class Spawner {
 public:
  Spawner(int channel, std::string farm, bool reports_jobs)
      : channel_(channel), farm_(std::move(farm)), reports_jobs_(reports_jobs) {
    // Programs take their parent for the agent and signal it; it must outlive that. Each gets its
    // requester's mask.
    (void)wire::hold_signals();
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
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
  // epoll tags: job ids start at kFirstJob; with kSession set, the job's terminal session.
  static constexpr std::uint64_t kChannel = 0;
  static constexpr std::uint64_t kChildren = 1;
  static constexpr std::uint64_t kSession = std::uint64_t{1} << 63;

  // Edge-triggered: a requester's connection stays in the epoll set as long as anybody has a copy
  // (a child of another job that has not exec'ed yet), and must not be reported for ever.
  void watch(int fd, std::uint64_t tag) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = tag;
    ::epoll_ctl(epoll_.borrow(), EPOLL_CTL_ADD, fd, &event);
  }

  void take(std::uint64_t tag) {
    if (tag == kChannel) {
      take_orders();
    } else if (tag == kChildren) {
      reap();
    } else if (Job* job = jobs_.find(tag & ~kSession)) {
      (tag & kSession) != 0 ? take_session(*job) : take_requester(*job);
    }
  }

  // Only a closed channel ends the context.
  void take_orders() {
    is_open_ = wire::take_datagrams(channel_, wire::Unreadable::skip,
                                    [this](wire::Frame frame) { obey(std::move(frame)); });
  }

  void obey(wire::Frame frame) {
    switch (frame.type) {
      case wire::MessageType::spawn_fds:
        if (auto more = wire::decode<wire::SpawnFds>(frame.payload)) {
          ahead_.add(more->job, std::move(frame.fds));
        }
        break;
      case wire::MessageType::spawn:
        if (auto order = wire::decode<wire::Spawn>(frame.payload)) {
          start(std::move(*order), std::move(frame.fds));
        }
        break;
      case wire::MessageType::run_again:
        if (auto order = wire::decode<wire::RunAgain>(frame.payload); order && !frame.fds.empty()) {
          run_again(*order, std::move(frame.fds.front()));
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

  void start(wire::Spawn order, std::vector<base::UniqueFd> fds) {
    fds = ahead_.take(order.job, std::move(fds));
    if (fds.empty()) return;
    auto job = std::make_unique<Job>();
    job->id = order.job;
    job->connection = std::move(fds.back());
    fds.pop_back();
    const auto& confinement = order.confinement;
    const std::size_t passed = order.request.fd_numbers.size();
    if (fds.size() != passed + confinement.has_ruleset + confinement.has_program) {
      return refuse(*job, {kRefused, EBADMSG, "descriptors were lost on the way to the context"});
    }
    const auto& policy = order.request.policy;
    job->program = order.request.path;
    job->started_ms = now_ms();
    job->on_disconnect = order.request.on_disconnect;
    job->on_stub_kill = order.request.on_stub_kill;
    job->is_service = order.request.is_service;
    job->kill_grace_ms = policy.kill_grace_ms;
    if (policy.time_limit_ms != 0) job->deadline_ms = job->started_ms + policy.time_limit_ms;
    std::vector<base::UniqueFd> own;
    for (std::size_t i = passed; i < fds.size(); ++i) own.push_back(std::move(fds[i]));
    fds.resize(passed);
    run(std::move(job), std::move(order.request), std::move(fds),
        AgentWall(confinement, farm_, std::move(own)));
  }

  void run(std::unique_ptr<Job> job, wire::ExecRequest request, std::vector<base::UniqueFd> fds,
           AgentWall wall) {
    if (jobs_.is_full()) {
      return refuse(*job, {kRefused, EAGAIN, job->program + ": too many jobs in this context"});
    }
    Job& added = jobs_.add(std::move(job));
    watch(added.connection.borrow(), added.id);
    if (request.tty == wire::TtyMode::fresh && !request.terminal_fds.empty()) {
      return run_in_session(added, std::move(request), std::move(fds), std::move(wall));
    }
    added.awaits_terminal = request.tty == wire::TtyMode::hand_over;
    const auto& state = request.state;
    const bool leads = state.group_leader || state.session_leader || added.awaits_terminal;
    if (!leads) added.group = groups_.take();
    added.launch = std::make_unique<Launch>(std::move(request), std::move(fds),
                                            std::max(added.group, 0), std::move(wall));
    if (added.awaits_terminal) return tell(added, wire::GiveTerminal{});
    launch(added);
  }

  /// False if the job is gone.
  bool launch(Job& job) {
    auto pid = job.launch->start();
    if (!pid) return give_up(job, pid.error());
    job.pid = *pid;
    if (job.group <= 0) job.group = *pid;
    tell(job, wire::Started{job.id, *pid});
    return true;
  }

  bool give_up(const Job& job, const base::Error& error) {
    refuse(job, {kRefused, error.code, job.program + ": " + error.message()});
    remove(job);
    return false;
  }

  void remove(const Job& job) {
    groups_.give_back(job.group);
    jobs_.remove(&job);
  }

  void run_in_session(Job& job, wire::ExecRequest request, std::vector<base::UniqueFd> fds,
                      AgentWall wall) {
    auto session = TerminalSession::start(std::move(request), std::move(fds), std::move(wall));
    if (!session) return (void)give_up(job, session.error());
    job.session = std::move(*session);
    watch(job.session->channel(), job.id | kSession);
  }

  void take_session(Job& job) {
    for (;;) {
      auto report = job.session->receive();
      if (!report) return lose_session(job);
      if (!*report) return;
      using Kind = TerminalSession::Report::Kind;
      if ((*report)->kind == Kind::started) {
        job.pid = (*report)->pid;
        job.group = (*report)->group;
        tell(job, wire::Started{job.id, job.pid}, job.session->master());
        if (!job.connection) disconnect(job);
      } else if ((*report)->kind == Kind::not_started) {
        refuse(job,
               Refusal(job.session->request(), (*report)->step, (*report)->error).message(false));
        return remove(job);
      } else {
        const base::WaitStatus status((*report)->status);
        this->report(job, status, (*report)->usage);
        if (!status.stop_signal() && !status.is_continued()) return;  // the job is gone
      }
    }
  }

  /// Somebody with uid 0 has killed the monitor, and nobody will hear of the program's end.
  void lose_session(const Job& job) {
    job.send_signal({SIGKILL, wire::KillScope::group});
    if (job.pid > 0) report_end(job, {.wait_status = SIGKILL});
    remove(job);
  }

  template <class Message>
  void tell(const Job& job, const Message& message, int fd = -1) {
    if (!job.connection) return;
    const std::span<const int> fds(&fd, fd < 0 ? 0 : 1);
    (void)wire::send_message(job.connection.borrow(), message, fds, MSG_DONTWAIT);
  }
  /// routerd, which has logged that it runs, hears of it, too.
  void refuse(const Job& job, const wire::NotStarted& refusal) {
    tell(job, refusal);
    (void)wire::send_datagram(channel_, wire::MessageType::job_refused,
                              wire::encode(wire::JobRefused{job.id, refusal}));
  }

  // Signals and what concerns its terminal; or the job's end, when the requester has gone.
  void take_requester(Job& job) {
    while (job.connection) {
      auto frame = job.receiver.receive(job.connection.borrow());
      if (!frame) return disconnect(job);
      if (!*frame) return;
      if ((*frame)->type == wire::MessageType::terminal_given) {
        if (std::exchange(job.awaits_terminal, false) && !launch(job)) return;
        continue;
      }
      obey_requester(job, **frame);
    }
  }

  void obey_requester(Job& job, const wire::Frame& frame) {
    if (frame.type == wire::MessageType::signal) {
      if (auto signal = wire::decode<wire::Signal>(frame.payload)) job.send_signal(*signal);
    }
    if (!job.session) return;
    if (frame.type == wire::MessageType::resize) {
      if (auto resize = wire::decode<wire::Resize>(frame.payload)) {
        job.session->resize(resize->winsize);
      }
    } else if (frame.type == wire::MessageType::resume) {
      if (auto resume = wire::decode<wire::Resume>(frame.payload)) {
        job.session->resume(resume->foreground);
      }
    } else if (frame.type == wire::MessageType::typed) {
      auto typed = wire::decode<wire::Typed>(frame.payload);
      if (!typed) return;
      // The program has not taken the foreground yet: the character will reach nobody.
      const bool is_early = job.session->has_foreground(job.session->monitor());
      if (is_early) job.send_signal({typed->signal, wire::KillScope::group});
      if (is_early || job.session->has_foreground(job.group)) {
        tell(job, wire::Interrupted{typed->signal});
      }
    }
  }

  void disconnect(Job& job) {
    if (job.connection) {
      ::epoll_ctl(epoll_.borrow(), EPOLL_CTL_DEL, job.connection.borrow(), nullptr);
      job.connection.reset();
    }
    if (job.awaits_terminal) {
      return (void)give_up(job, base::Error{"its requester went away", ECONNRESET, {}});
    }
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
      if (Job* job = jobs_.find_pid(pid)) {
        report(*job, base::WaitStatus(status), usage);
      } else if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) {
        monitor_ended(pid);
        groups_.forget(pid);
      }
    }
  }

  // Its channel tells, too, but only when nobody shares it any more.
  void monitor_ended(int pid) {
    Job* job = jobs_.find_monitor(pid);
    if (job == nullptr) return;
    const auto id = job->id;
    take_session(*job);  // what it has told before
    if (Job* left = jobs_.find(id)) lose_session(*left);
  }

  void report(Job& job, base::WaitStatus status, const rusage& usage) {
    // What was typed before the end is answered before the end (Typed).
    if (job.session && job.connection) take_requester(job);
    if (const auto signal = status.stop_signal()) return tell(job, wire::Stopped{*signal});
    if (status.is_continued()) return tell(job, wire::Continued{});
    // Workers that outlive their service would hold what the next one needs.
    if (job.is_service && job.group > 0) ::kill(-job.group, SIGKILL);
    if (job.launch && job.launch->error() != 0) {
      refuse(job, job.launch->refusal());
    } else {
      const wire::Exited exited{status.raw(),
                                microseconds(usage.ru_utime),
                                microseconds(usage.ru_stime),
                                static_cast<std::uint64_t>(usage.ru_maxrss),
                                job.timed_out,
                                {}};
      tell(job, exited);
      report_end(job, exited);
    }
    remove(job);
  }

  /// For the audit log. Nobody waits for it: what routerd does not take in time is not told.
  void report_end(const Job& job, const wire::Exited& exited) const {
    if (!reports_jobs_) return;
    (void)wire::send_datagram(
        channel_, wire::MessageType::job_ended,
        wire::encode(wire::JobEnded{job.id, exited.wait_status, exited.user_us, exited.system_us,
                                    exited.max_rss_kib, exited.timed_out}));
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
  /// Where this context's programs see the shim farm.
  std::string farm_;
  bool reports_jobs_;
  base::UniqueFd epoll_;
  base::UniqueFd child_signals_;
  JobTable jobs_;
  ProcessGroups groups_;
  wire::FdsAhead ahead_;
  bool is_open_ = true;
};

}  // namespace

void serve(int channel, const std::string& farm, bool reports_jobs) {
  Spawner(channel, farm, reports_jobs).run();
}

}  // namespace contexts::init
