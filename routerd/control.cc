#include "routerd/control.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "contexts/capabilities.h"
#include "routerd/embed.h"
#include "routerd/spec_json.h"
#include "routerd/version.h"

namespace routerd {

using json = nlohmann::json;

namespace {

/// What a verb needs to answer.
struct Ask {
  Daemon& daemon;
  FrameSession& session;
  const Peer& peer;
  const json& body;
};

void reply(FrameSession& session, json answer) {
  answer["ok"] = !answer.contains("error");
  session.send(wire::MessageType::control_reply,
               wire::encode(wire::ControlReply{
                   answer.dump(-1, ' ', false, json::error_handler_t::replace)}));
}

json error_json(const base::Error& error) {
  return {{"error", {{"errno", error.code}, {"message", error.message()}}}};
}

void fail(FrameSession& session, const base::Error& error) { reply(session, error_json(error)); }

json describe(const HostedContext& hosted) {
  const auto& context = *hosted.context;
  auto described = to_json(context.spec());
  described["tier"] = contexts::name_of(context.tier());
  described["lacks"] = context.lacks();
  described["initPid"] = context.init_pid();
  described["pidNamespace"] = context.pid_namespace();
  described["integrity"] = context.spec().is_platform || contexts::is_isolated(context.tier())
                               ? "no: the root file system is shared with the platform"
                               : "no: not isolated";
  return described;
}

void info(const Ask& ask) {
  const auto& daemon = ask.daemon;
  reply(ask.session, {{"version", kVersionString},
                      {"pid", ::getpid()},
                      {"runtimeDir", daemon.runtime().root()},
                      {"tier", contexts::name_of(daemon.tier())},
                      {"isolated", contexts::is_isolated(daemon.tier())},
                      {"whyNotStronger", daemon.tier_reasons()},
                      {"development", daemon.options().development},
                      {"embedded", daemon.options().is_embedded},
                      {"contexts", daemon.hosted().size()}});
}

void list_contexts(const Ask& ask) {
  json list = json::array();
  for (const auto& [name, hosted] : ask.daemon.hosted()) list.push_back(describe(*hosted));
  reply(ask.session, {{"contexts", std::move(list)}});
}

HostedContext* find_or_fail(const Ask& ask) {
  const std::string name = ask.body.value("context", "");
  HostedContext* hosted = ask.daemon.find(name);
  if (hosted == nullptr) {
    fail(ask.session,
         {"there is no context '" + name.substr(0, 64) + "'", 0, "'airlock ctx ls' lists them"});
  }
  return hosted;
}

void inspect_context(const Ask& ask) {
  if (const auto* hosted = find_or_fail(ask)) reply(ask.session, {{"context", describe(*hosted)}});
}

void create_context(const Ask& ask) {
  auto spec = spec_from_json(ask.body.value("spec", json::object()));
  if (!spec) return fail(ask.session, spec.error());
  auto created = ask.daemon.create(std::move(*spec));
  if (!created) return fail(ask.session, created.error());
  reply(ask.session, {{"context", describe(**created)}});
}

void set_context(const Ask& ask) {
  HostedContext* hosted = find_or_fail(ask);
  if (hosted == nullptr) return;
  auto changed = change_spec(hosted->context->spec(), ask.body.value("changes", json::object()));
  if (!changed) return fail(ask.session, changed.error());
  for (const auto& [name, each] : ask.daemon.hosted()) each->filters.clear();
  hosted->is_claimable = false;
  reply(ask.session, {{"context", describe(*hosted)}});
}

void remove_context(const Ask& ask) {
  auto destroyed = ask.daemon.destroy(ask.body.value("context", ""));
  if (!destroyed) return fail(ask.session, destroyed.error());
  reply(ask.session, {{"survivors", destroyed->survivors}});
}

constexpr std::chrono::seconds kAnswerTime{2};

void list_jobs(const Ask& ask) {
  HostedContext* hosted = find_or_fail(ask);
  if (hosted == nullptr) return;
  static std::uint64_t next_serial = 1;
  const std::uint64_t serial = next_serial++;
  auto asked = hosted->handover->tell(wire::ListJobs{serial});
  if (!asked) return fail(ask.session, asked.error());
  // An init that is gone or overloaded answers nothing.
  auto deadline = std::make_shared<boost::asio::steady_timer>(ask.session.executor(), kAnswerTime);
  deadline->async_wait([deadline, &daemon = ask.daemon, name = hosted->spec().name, serial,
                        weak = ask.session.weak_from_this()](boost::system::error_code error) {
    const auto session = weak.lock();
    HostedContext* asked_of = daemon.find(name);
    if (asked_of != nullptr) asked_of->job_questions.erase(serial);
    if (!error && session) fail(*session, {"context '" + name + "' did not answer", ETIMEDOUT, {}});
  });
  hosted->job_questions.emplace(
      serial, [deadline, weak = ask.session.weak_from_this()](const wire::JobList& list) {
        deadline->cancel();
        json jobs = json::array();
        for (const auto& job : list.jobs) {
          jobs.push_back({{"job", job.job},
                          {"pid", job.pid},
                          {"runningMs", job.running_ms},
                          {"program", job.program}});
        }
        if (const auto session = weak.lock()) reply(*session, {{"jobs", std::move(jobs)}});
      });
}

void signal_job(const Ask& ask) {
  HostedContext* hosted = find_or_fail(ask);
  if (hosted == nullptr) return;
  const int signal = ask.body.value("signal", SIGTERM);
  if (signal < 1 || signal > 64) return fail(ask.session, {"signal number", EINVAL, "1 to 64"});
  const auto job = ask.body.value("job", std::uint64_t{0});
  auto told = hosted->handover->tell(wire::SignalJob{job, {signal, wire::KillScope::group}});
  if (!told) return fail(ask.session, told.error());
  reply(ask.session, json::object());
}

void routes(const Ask& ask) {
  json list = json::array();
  for (const auto& record : ask.daemon.route_log().records()) list.push_back(to_json(record));
  reply(ask.session, {{"routes", std::move(list)}});
  if (!ask.body.value("follow", false)) return;
  auto& log = ask.daemon.route_log();
  const auto number = log.follow([weak = ask.session.weak_from_this()](const RouteRecord& record) {
    if (const auto session = weak.lock()) {
      session->send(wire::MessageType::event,
                    wire::encode(wire::Event{
                        to_json(record).dump(-1, ' ', false, json::error_handler_t::replace)}));
    }
  });
  ask.session.on_close([&log, number] { log.unfollow(number); });
}

void explain_route(const Ask& ask) {
  HostedContext* hosted = find_or_fail(ask);
  if (hosted == nullptr) return;
  const auto argv = ask.body.value("argv", std::vector<std::string>{});
  if (argv.empty()) return fail(ask.session, {"argv", EINVAL, "expected a program"});
  const auto decision = ask.daemon.router().explain(*hosted, argv.front(), argv);
  constexpr const char* kNames[] = {"run_in", "run_here", "refuse"};
  reply(ask.session, {{"outcome", kNames[static_cast<int>(decision.outcome)]},
                      {"to", decision.context},
                      {"rule", decision.rule},
                      {"reason", decision.reason}});
}

void embed_contexts(const Ask& ask) {
  if (!ask.daemon.options().is_embedded) {
    return fail(ask.session, {"embed", EPERM, "only the daemon of 'airlock run' does that"});
  }
  auto made = embed(ask.daemon, ask.body);
  if (!made) return fail(ask.session, made.error());
  info(ask);
}

// The embedded daemon outlives the `airlock run` that started it.
void keep(const Ask& ask) {
  ask.daemon.keep();
  // Whoever waits for the end of our stderr waits for `airlock run`, not for us.
  const base::UniqueFd log(::open((ask.daemon.runtime().root() + "/airlock.log").c_str(),
                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (log) ::dup2(log.borrow(), STDERR_FILENO);
  reply(ask.session, json::object());
}

void shut_down(const Ask& ask) {
  reply(ask.session, json::object());
  ask.daemon.stop();
}

const std::map<std::string, void (*)(const Ask&), std::less<>>& verbs() {
  static const std::map<std::string, void (*)(const Ask&), std::less<>> table = {
      {"info", info},
      {"ctx.list", list_contexts},
      {"ctx.inspect", inspect_context},
      {"ctx.create", create_context},
      {"ctx.set", set_context},
      {"ctx.remove", remove_context},
      {"jobs", list_jobs},
      {"signal", signal_job},
      {"routes", routes},
      {"route.explain", explain_route},
      {"embed", embed_contexts},
      {"keep", keep},
      {"shutdown", shut_down}};
  return table;
}

void answer(Daemon& daemon, FrameSession& session, const Peer& peer, const std::string& text) {
  // No exceptions from the parser; from wrong types of known fields they are caught here.
  const json body = json::parse(text, nullptr, false);
  if (!body.is_object())
    return fail(session, {"control request", EBADMSG, "expected a JSON object"});
  try {
    const auto verb = verbs().find(body.value("verb", ""));
    if (verb == verbs().end()) {
      return fail(session, {"verb '" + body.value("verb", "").substr(0, 64) + "'", ENOSYS, {}});
    }
    verb->second({daemon, session, peer, body});
  } catch (const json::exception& error) {
    fail(session, {"control request", EINVAL, error.what()});
  }
}

}  // namespace

std::shared_ptr<FrameSession> serve_client(Daemon& daemon, boost::asio::io_context& io, Peer peer,
                                           base::UniqueFd socket) {
  auto on_frame = [&daemon, peer = std::move(peer)](FrameSession& session, wire::Frame frame) {
    if (frame.type == wire::MessageType::exec_request) {
      const auto accepted = std::chrono::steady_clock::now();
      daemon.router().run(peer, std::move(frame), session.release(), accepted);
      return false;
    }
    auto request = frame.type == wire::MessageType::control
                       ? wire::decode<wire::Control>(frame.payload)
                       : base::failure("control request", EBADMSG);
    if (!request) {
      fail(session, request.error());
      session.close();
      return false;
    }
    answer(daemon, session, peer, request->json);
    return true;
  };
  return std::make_shared<FrameSession>(io, std::move(socket), std::move(on_frame));
}

}  // namespace routerd
