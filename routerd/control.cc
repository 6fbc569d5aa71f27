#include "routerd/control.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "contexts/capabilities.h"
#include "routerd/control_api.h"
#include "routerd/control_jobs.h"
#include "routerd/control_kill.h"
#include "routerd/control_places.h"
#include "routerd/control_services.h"
#include "routerd/embed.h"
#include "routerd/kept_jobs.h"
#include "routerd/spec_json.h"
#include "routerd/tier_advice.h"
#include "routerd/version.h"

namespace routerd {

using json = nlohmann::json;

namespace {

json describe(const HostedContext& hosted) {
  const auto& context = *hosted.context;
  auto described = to_json(context.spec());
  described["tier"] = contexts::name_of(context.tier());
  described["lacks"] = context.lacks();
  described["limits"] = json::array();
  for (const auto& limit : context.kept_limits()) {
    described["limits"].push_back({{"name", limit.name},
                                   {"limit", limit.value},
                                   {"by", limit.by},
                                   {"hits", context.limit_hits(limit.name)}});
  }
  described.update(hosted.lifetime->describe());
  described["enforcement"] = enforcement_json(context.spec().enforce, hosted.offers);
  described["initPid"] = context.init_pid();
  described["pidNamespace"] = context.pid_namespace();
  described["apiSocket"] =
      hosted.door ? json(context.airlock_folder() + "/api.sock") : json(nullptr);
  described["rootfs"] = context.has_own_rootfs() ? "overlay" : "shared";
  described["integrity"] = integrity_of(context.tier(), context.has_own_rootfs());
  return described;
}

void info(const Ask& ask) {
  const auto& daemon = ask.daemon;
  json enforcement = json::object();
  for (const auto& [name, hosted] : daemon.hosted()) {
    if (hosted->offers.empty()) continue;
    auto told = enforcement_json(hosted->spec().enforce, hosted->offers);
    enforcement[name] = {{"dynamic", told["dynamic"]}, {"static", told["static"]}};
  }
  reply(ask.session, {{"version", kVersionString},
                      {"pid", ::getpid()},
                      {"runtimeDir", daemon.runtime().root()},
                      {"tier", contexts::name_of(daemon.tier())},
                      {"requiredTier", contexts::name_of(daemon.options().required)},
                      {"isolated", contexts::is_isolated(daemon.tier())},
                      {"whyNotStronger", daemon.tier_reasons()},
                      {"development", daemon.options().development},
                      {"embedded", daemon.options().is_embedded},
                      {"contexts", daemon.hosted().size()},
                      {"enforcement", std::move(enforcement)}});
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
    const std::string why = "there is no context '" + name.substr(0, 64) + "'";
    reply(ask.session,
          {{"error", {{"errno", ENOENT}, {"message", why + ": 'airlock ctx ls' lists them"}}}});
  }
  return hosted;
}

void inspect_context(const Ask& ask) {
  if (const auto* hosted = find_or_fail(ask)) reply(ask.session, {{"context", describe(*hosted)}});
}

void create_context(const Ask& ask) {
  json body = ask.body.value("spec", json::object());
  Lifespan lifespan;
  if (auto taken = take_lifespan(body, lifespan); !taken) return fail(ask.session, taken.error());
  auto spec = spec_from_json(body);
  if (!spec) return fail(ask.session, spec.error());
  auto created = ask.daemon.create(std::move(*spec));
  if (!created) return fail(ask.session, created.error());
  (*created)->lifetime->set(lifespan);
  reply(ask.session, {{"context", describe(**created)}});
}

void set_context(const Ask& ask) {
  HostedContext* hosted = find_or_fail(ask);
  if (hosted == nullptr) return;
  const auto before = hosted->spec();
  json changes = ask.body.value("changes", json::object());
  Lifespan lifespan = hosted->lifetime->lifespan();
  if (auto taken = take_lifespan(changes, lifespan); !taken) {
    return fail(ask.session, taken.error());
  }
  auto changed = change_spec(hosted->context->spec(), changes);
  if (!changed) return fail(ask.session, changed.error());
  hosted->lifetime->set(lifespan);
  const json env = changes.value("env", json::object());
  std::vector<std::string> names;
  for (const auto& [name, value] : env.items()) names.push_back(name);
  hosted->shells->will_change(names, changes.contains("cwd"));
  if (auto* trail = ask.daemon.trail()) trail->context_changed(before, hosted->spec());
  for (const auto& [name, each] : ask.daemon.hosted()) each->env_routes.clear();
  ask.daemon.follow_installed_programs();
  hosted->is_claimable = false;
  ask.daemon.router().update_shells(*hosted);
  reply(ask.session, {{"context", describe(*hosted)}});
}

void remove_context(const Ask& ask) {
  if (ask.body.value("context", "") == services::kControl) {
    return fail(ask.session, {"remove context 'control'", EPERM, "services run there"});
  }
  auto destroyed = ask.daemon.destroy(ask.body.value("context", ""));
  if (!destroyed) return fail(ask.session, destroyed.error());
  reply(ask.session, {{"survivors", destroyed->survivors}});
}

/// For an answer that comes later, if the client is there by then.
Reply later(const Ask& ask) {
  return [weak = ask.session.weak_from_this()](base::Result<json> answer) {
    const auto session = weak.lock();
    if (!session) return;
    answer ? reply(*session, std::move(*answer)) : fail(*session, answer.error());
  };
}

void jobs(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) list_jobs(ask.daemon, *hosted, later(ask));
}

void signal(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) signal_job(ask.daemon, *hosted, ask.body, later(ask));
}

void kill_all(const Ask& ask) {
  auto* hosted = find_or_fail(ask);
  if (hosted != nullptr) kill_in_scope(ask.daemon, *hosted, ask.body, later(ask));
}

void shells(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) list_shells(*hosted, ask.peer, later(ask));
}

void shell_start(const Ask& ask) {
  auto* hosted = find_or_fail(ask);
  if (hosted != nullptr) later(ask)(start_shell(ask.daemon, *hosted, ask.peer, ask.body));
}

void context_ports(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) later(ask)(list_ports(*hosted->context, ask.body));
}

void shell_interrupt(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) interrupt_shell(*hosted, ask.peer, ask.body, later(ask));
}

void shell_reset(const Ask& ask) {
  if (auto* hosted = find_or_fail(ask)) reset_shell(*hosted, ask.peer, ask.body, later(ask));
}

void routes(const Ask& ask) {
  json list = json::array();
  for (const auto& record : ask.daemon.route_log().records()) list.push_back(to_json(record));
  reply(ask.session, {{"routes", std::move(list)}});
  if (!ask.body.value("follow", false)) return;
  auto& log = ask.daemon.route_log();
  const auto number = log.follow([weak = ask.session.weak_from_this()](const RouteRecord& record) {
    if (const auto session = weak.lock()) {
      session->send(wire::MessageType::event, wire::encode(wire::Event{to_text(to_json(record))}));
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

Verb find_verb(const std::string& name) {
  static const std::map<std::string, Verb, std::less<>> table = {
      {"info", info},
      {"ctx.list", list_contexts},
      {"ctx.inspect", inspect_context},
      {"ctx.create", create_context},
      {"ctx.set", set_context},
      {"ctx.remove", remove_context},
      {"jobs", jobs},
      {"signal", signal},
      {"kill", kill_all},
      {"shells", shells},
      {"shell.interrupt", shell_interrupt},
      {"shell.reset", shell_reset},
      {"shell.start", shell_start},
      {"ctx.ports", context_ports},
      {"routes", routes},
      {"route.explain", explain_route},
      {"embed", embed_contexts},
      {"keep", keep},
      {"services", [](const Ask& ask) { reply(ask.session, list_services(ask.daemon)); }},
      {"service.restart",
       [](const Ask& ask) { reply_or_fail(ask, restart_service(ask.daemon, ask.body)); }},
      {"service.log",
       [](const Ask& ask) { reply_or_fail(ask, service_log(ask.daemon, ask.session, ask.body)); }},
      {"reload", [](const Ask& ask) { reply_or_fail(ask, reload(ask.daemon)); }},
      {"shutdown", shut_down}};
  const auto found = table.find(name);
  return found != table.end() ? found->second : find_api_verb(name);
}

void answer(Daemon& daemon, FrameSession& session, const Peer& peer, Door door,
            const std::string& text, ApiRequest& asked_by) {
  // No exceptions from the parser; from wrong types of known fields they are caught here.
  const json body = json::parse(text, nullptr, false);
  if (!body.is_object())
    return fail(session, {"control request", EBADMSG, "expected a JSON object"});
  try {
    const std::string name = body.value("verb", "");
    const Verb verb = find_verb(name);
    if (verb == nullptr) {
      return fail(session, {"verb '" + name.substr(0, 64) + "'", ENOSYS, {}});
    }
    if (door == Door::api && !is_for_api(name)) {
      return fail(session, {"verb '" + name + "'", EPERM, "not for the API"});
    }
    verb({daemon, session, peer, body, asked_by});
  } catch (const json::exception& error) {
    fail(session, {"control request", EINVAL, error.what()});
  }
}

}  // namespace

std::shared_ptr<FrameSession> serve_client(Daemon& daemon, boost::asio::io_context& io, Peer peer,
                                           base::UniqueFd socket, Door door) {
  auto on_frame = [&daemon, peer = std::move(peer), door, asked_by = ApiRequest{}](
                      FrameSession& session, wire::Frame frame) mutable {
    // A connection is its maker's, as at a router's socket.
    if (frame.sender != peer.pid) {
      fail(session, {"control request", EACCES, "the connection was made by another process"});
      session.close();
      return false;
    }
    const Served served = serve_kept_jobs(daemon, session, peer, frame, asked_by);
    if (served != Served::no) return served == Served::yes;
    if (frame.type == wire::MessageType::exec_request) {
      const auto accepted = std::chrono::steady_clock::now();
      daemon.router().run(peer, std::move(frame), session.release(), accepted);
      return false;
    }
    if (frame.type == wire::MessageType::file_job) {
      const auto accepted = std::chrono::steady_clock::now();
      daemon.router().run_files(peer, std::move(frame), session.release(), accepted, asked_by);
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
    answer(daemon, session, peer, door, request->json, asked_by);
    return true;
  };
  return std::make_shared<FrameSession>(io, std::move(socket), std::move(on_frame));
}

}  // namespace routerd
