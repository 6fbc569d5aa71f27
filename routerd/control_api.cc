#include "routerd/control_api.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "routerd/control_places.h"

namespace routerd {

using nlohmann::json;

namespace {

void audit_state(const Ask& ask) {
  const auto* trail = ask.daemon.trail();
  if (trail == nullptr) {
    return fail(ask.session,
                {"this daemon keeps no audit log", ENOENT, "its configuration has no 'audit'"});
  }
  reply(ask.session, {{"folder", trail->log().options().folder},
                      {"head", audit::to_text(trail->log().head())},
                      {"dropped", trail->log().dropped()},
                      {"lastError", trail->log().last_error()}});
}

// Lost ones are counted by the log itself.
void follow_audit(const Ask& ask) {
  auto* trail = ask.daemon.trail();
  if (trail == nullptr) {
    return fail(ask.session, {"this daemon keeps no audit log", ENOTSUP, {}});
  }
  reply(ask.session, json::object());
  const auto number =
      trail->log().follow([weak = ask.session.weak_from_this()](const json& record) {
        if (const auto session = weak.lock()) {
          session->send(wire::MessageType::event, wire::encode(wire::Event{to_text(record)}));
        }
      });
  ask.session.on_close([trail, number] { trail->log().unfollow(number); });
}

void api_refused(const Ask& ask) {
  if (auto* trail = ask.daemon.trail()) trail->api_refused(ask.body);
  reply(ask.session, json::object());
}

void api_exec(const Ask& ask) {
  constexpr std::size_t kLongest = 128;
  const auto word = [&ask](const char* name) {
    return ask.body.value(name, "").substr(0, kLongest);
  };
  ask.asked_by = {word("operation"), word("exec"),      word("token"),
                  word("client"),    word("requestId"), word("traceparent")};
  reply(ask.session, json::object());
}

void tell_settings(const Ask& ask) {
  auto* settings = ask.daemon.api_settings();
  if (settings == nullptr) {
    return fail(ask.session, {"api.settings", ENOENT, "the configuration has no 'api'"});
  }
  const auto told = [settings, is_audited = ask.daemon.trail() != nullptr] {
    json current = settings->current();
    current["isAudited"] = is_audited;
    return current;
  };
  reply(ask.session, told());
  const auto number = settings->follow([told, weak = ask.session.weak_from_this()] {
    if (const auto session = weak.lock()) {
      session->send(wire::MessageType::event, wire::encode(wire::Event{to_text(told())}));
    }
  });
  ask.session.on_close([settings, number] { settings->unfollow(number); });
}

void list_kept(const Ask& ask) {
  json keys = json::array();
  for (const auto& [key, kept] : ask.daemon.job_store().jobs()) keys.push_back(key);
  reply(ask.session, {{"keys", std::move(keys)}});
}

// The answer comes before any connection.
void take_connections(const Ask& ask) {
  reply(ask.session, json::object());
  ask.daemon.door_taker().serve(ask.session.shared_from_this());
}

/// For those who may do everything: root and the daemon's own user. Others of the control socket
/// run programs as themselves, which the API cannot.
void connect_to_api(const Ask& ask) {
  if (ask.daemon.api_settings() == nullptr) {
    return fail(ask.session, {"connect to the API", ENOENT, "the configuration has no 'api'"});
  }
  const unsigned uid = ask.peer.credentials.uid;
  if (uid != 0 && uid != ::geteuid()) {
    return fail(ask.session, {"connect to the API", EPERM, "use its port, and a token"});
  }
  int ends[2];
  if (!ask.daemon.door_taker().can_take() ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ask.session, {"connect to the API", EAGAIN, {}});
  }
  const base::UniqueFd ours(ends[0]);
  if (auto given = ask.daemon.door_taker().give("", base::UniqueFd(ends[1])); !given) {
    return fail(ask.session, {"connect to the API", EAGAIN, {}});
  }
  const int fds[] = {ours.borrow()};
  (void)wire::send_message(ask.session.socket(), wire::ControlReply{R"({"ok":true})"}, fds,
                           MSG_DONTWAIT);
}

}  // namespace

Verb find_api_verb(const std::string& name) {
  static const std::map<std::string, Verb> table = {
      {"audit", audit_state},
      {"audit.follow", follow_audit},
      {"api.refused", api_refused},
      {"api.exec", api_exec},
      {"jobs.kept", list_kept},
      {"api.settings", tell_settings},
      {"api.connections", take_connections},
      {"api.connect", connect_to_api},
      {"whois", [](const Ask& ask) { reply_or_fail(ask, tell_origin(ask.daemon, ask.body)); }}};
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

bool is_for_api(std::string_view verb) {
  constexpr std::string_view kForApi[] = {"info",
                                          "ctx.list",
                                          "ctx.inspect",
                                          "ctx.create",
                                          "ctx.set",
                                          "ctx.remove",
                                          "jobs",
                                          "signal",
                                          "shells",
                                          "shell.interrupt",
                                          "shell.reset",
                                          "routes",
                                          "route.explain",
                                          "services",
                                          "jobs.kept",
                                          "api.settings",
                                          "api.connections",
                                          "api.refused",
                                          "audit.follow",
                                          "whois",
                                          "shell.start",
                                          "ctx.ports",
                                          "api.exec",
                                          "kill"};
  return std::ranges::find(kForApi, verb) != std::end(kForApi);
}

}  // namespace routerd
