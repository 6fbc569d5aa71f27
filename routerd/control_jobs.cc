#include "routerd/control_jobs.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace routerd {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kAnswerTime{2};

/// Asks the init for the context's jobs; `then` is called with its answer. Without one in time
/// `reply` is told so.
void with_jobs(Daemon& daemon, HostedContext& hosted, const Reply& reply,
               std::function<void(const wire::JobList&)> then) {
  static std::uint64_t next_serial = 1;
  const std::uint64_t serial = next_serial++;
  if (auto asked = hosted.handover->tell(wire::ListJobs{serial}); !asked) {
    return reply(tl::unexpected<base::Error>(asked.error()));
  }
  // An init that is gone or overloaded answers nothing.
  auto deadline = std::make_shared<boost::asio::steady_timer>(daemon.io(), kAnswerTime);
  deadline->async_wait([deadline, &daemon, name = hosted.spec().name, serial,
                        reply](boost::system::error_code error) {
    HostedContext* asked_of = daemon.find(name);
    if (asked_of != nullptr) asked_of->job_questions.erase(serial);
    if (!error) reply(base::failure("context '" + name + "' did not answer", ETIMEDOUT));
  });
  hosted.job_questions.emplace(serial, [deadline, then = std::move(then)](const auto& list) {
    deadline->cancel();
    then(list);
  });
}

struct ShellAnswer {
  Shells::Key key;
  wire::ShellState state;
};

/// What every shell of the context says of itself; those that do not answer are left out.
void with_shells(Shells& shells, std::function<void(const std::vector<ShellAnswer>&)> then) {
  struct Gathered {
    std::vector<ShellAnswer> answers;
    std::size_t missing = 0;
    std::function<void(const std::vector<ShellAnswer>&)> then;
  };
  const auto keys = shells.keys();
  if (keys.empty()) return then({});
  auto gathered = std::make_shared<Gathered>(
      Gathered{.answers = {}, .missing = keys.size(), .then = std::move(then)});
  for (const auto& key : keys) {
    shells.ask(key, wire::ShellOrder::Action::tell,
               [gathered, key](base::Result<wire::ShellState> state) {
                 if (state) gathered->answers.push_back({key, std::move(*state)});
                 if (--gathered->missing == 0) gathered->then(gathered->answers);
               });
  }
}

json to_json(const wire::Job& job) {
  return {
      {"job", job.job}, {"pid", job.pid}, {"runningMs", job.running_ms}, {"program", job.program}};
}

const char* name_of(wire::ShellEngine engine) {
  constexpr const char* kNames[] = {"", "bash-builtin", "bash-loop", "sh"};
  return kNames[static_cast<std::size_t>(engine)];
}

json describe(const ShellAnswer& answer, const wire::Credentials* own) {
  const auto& state = answer.state;
  const bool is_busy = !state.jobs.empty();
  return {{"name", answer.key.name},
          {"uid", answer.key.credentials.uid},
          {"isOwn", own != nullptr && answer.key.credentials == *own},
          {"engine", name_of(state.engine)},
          {"pid", state.pid},
          {"cwd", state.cwd},
          {"background", state.background},
          {"job", is_busy ? json(state.jobs.front().job) : json(nullptr)},
          {"runningMs", is_busy ? state.jobs.front().running_ms : 0},
          {"waiting", is_busy ? state.jobs.size() - 1 : 0}};
}

bool has_job(const std::vector<wire::Job>& jobs, std::uint64_t number) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [number](const wire::Job& job) { return job.job == number; });
}

/// Of the job's own spawner or shell; null if it has ended.
Handover* channel_of(HostedContext& hosted, std::uint64_t job, const wire::JobList& list,
                     const std::vector<ShellAnswer>& shells) {
  if (job == 0 || has_job(list.jobs, job)) return hosted.handover.get();
  for (const auto& [key, state] : shells) {
    if (has_job(state.jobs, job)) return hosted.shells->find(key);
  }
  return nullptr;
}

void order_shell(HostedContext& hosted, const Peer& peer, const json& body,
                 wire::ShellOrder::Action action, const Reply& reply,
                 std::function<json(const wire::ShellState&)> to_answer) {
  auto credentials = ExecRouter::credentials_in(hosted, peer);
  if (!credentials) return reply(tl::unexpected<base::Error>(credentials.error()));
  const Shells::Key key{body.value("shell", "default"), std::move(*credentials)};
  hosted.shells->ask(
      key, action, [reply, to_answer = std::move(to_answer)](base::Result<wire::ShellState> told) {
        if (!told) return reply(tl::unexpected<base::Error>(told.error()));
        reply(to_answer(*told));
      });
}

}  // namespace

void list_jobs(Daemon& daemon, HostedContext& hosted, const Reply& reply) {
  with_jobs(daemon, hosted, reply, [shells = hosted.shells, reply](const wire::JobList& list) {
    json jobs = json::array();
    for (const auto& job : list.jobs) jobs.push_back(to_json(job));
    with_shells(*shells, [reply, jobs = std::move(jobs)](const auto& answers) mutable {
      for (const auto& [key, state] : answers) {
        for (const auto& job : state.jobs) {
          jobs.push_back(to_json(job));
          jobs.back()["shell"] = key.name;
        }
      }
      reply(json{{"jobs", std::move(jobs)}});
    });
  });
}

void runs_anything(Daemon& daemon, HostedContext& hosted, const std::function<void(bool)>& then) {
  const Reply on_error = [then](const base::Result<json>&) { then(true); };
  with_jobs(daemon, hosted, on_error, [shells = hosted.shells, then](const wire::JobList& list) {
    const auto hosts = shells->hosts();
    const bool has_job = std::ranges::any_of(
        list.jobs, [&hosts](const wire::Job& job) { return !hosts.contains(job.job); });
    if (has_job) return then(true);
    with_shells(*shells, [then](const auto& answers) {
      then(std::ranges::any_of(answers, [](const auto& each) { return !each.state.jobs.empty(); }));
    });
  });
}

/// Job 0 is all of them, those of shells by the end of their hosts. One that has ended is an error,
/// as for kill(1).
void signal_job(Daemon& daemon, HostedContext& hosted, const json& body, const Reply& reply) {
  const int signal = body.value("signal", SIGTERM);
  if (signal < 1 || signal > 64) return reply(base::failure("signal number", EINVAL, "1 to 64"));
  const auto job = body.value("job", std::uint64_t{0});
  auto deliver = [&daemon, job, signal, name = hosted.spec().name, reply](
                     const wire::JobList& list, const std::vector<ShellAnswer>& shells) {
    HostedContext* target = daemon.find(name);
    Handover* channel = target != nullptr ? channel_of(*target, job, list, shells) : nullptr;
    if (channel == nullptr) {
      return reply(base::failure("job " + std::to_string(job) + " in context '" + name + "'", ESRCH,
                                 "'airlock ps " + name + "' lists those that run"));
    }
    auto told = channel->tell(wire::SignalJob{job, {signal, wire::KillScope::group}});
    if (!told) return reply(tl::unexpected<base::Error>(told.error()));
    reply(json::object());
  };
  with_jobs(daemon, hosted, reply,
            [shells = hosted.shells, deliver = std::move(deliver)](const wire::JobList& list) {
              with_shells(*shells,
                          [deliver, list](const auto& answers) { deliver(list, answers); });
            });
}

void with_job_pid(Daemon& daemon, HostedContext& hosted, std::uint64_t job, const Reply& reply,
                  std::function<void(pid_t)> then) {
  with_jobs(daemon, hosted, reply,
            [job, reply, then = std::move(then), name = hosted.spec().name](const auto& list) {
              const auto found = std::ranges::find(list.jobs, job, &wire::Job::job);
              if (found != list.jobs.end()) return then(found->pid);
              reply(base::failure("job " + std::to_string(job) + " in context '" + name + "'",
                                  ESRCH, "'airlock ps " + name + "' lists those that run"));
            });
}

void list_shells(HostedContext& hosted, const Peer& peer, Reply reply) {
  auto own = ExecRouter::credentials_in(hosted, peer);
  with_shells(*hosted.shells,
              [own = std::move(own), reply = std::move(reply)](const auto& answers) {
                json shells = json::array();
                for (const auto& answer : answers) {
                  shells.push_back(describe(answer, own ? &*own : nullptr));
                }
                reply(json{{"shells", std::move(shells)}});
              });
}

base::Result<json> start_shell(Daemon& daemon, HostedContext& hosted, const Peer& peer,
                               const json& body) {
  auto credentials = ExecRouter::credentials_in(hosted, peer);
  if (!credentials) return tl::unexpected<base::Error>(credentials.error());
  const Shells::Key key{body.value("shell", "default"), std::move(*credentials)};
  if (!contexts::is_name(key.name)) {
    return base::failure("shell name '" + key.name.substr(0, 64) + "'", EINVAL,
                         std::string("expected ") + contexts::kNameRule);
  }
  const bool is_there = hosted.shells->find(key) != nullptr;
  auto shell = daemon.router().shell_of(hosted, key);
  if (!shell) return tl::unexpected<base::Error>(shell.error());
  return json{{"started", !is_there}};
}

void interrupt_shell(HostedContext& hosted, const Peer& peer, const json& body,
                     const Reply& reply) {
  order_shell(hosted, peer, body, wire::ShellOrder::Action::interrupt, reply,
              [](const wire::ShellState& state) {
                const bool was_running = state.reached != 0;
                return json{{"job", was_running ? json(state.jobs.front().job) : json(nullptr)}};
              });
}

void reset_shell(HostedContext& hosted, const Peer& peer, const json& body, const Reply& reply) {
  order_shell(hosted, peer, body, wire::ShellOrder::Action::reset, reply,
              [](const wire::ShellState& state) {
                return json{{"killed", state.reached}, {"survivors", state.survivors}};
              });
}

}  // namespace routerd
