#include "routerd/kept_jobs.h"

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "routerd/daemon.h"

namespace routerd {
namespace {

using nlohmann::json;

constexpr int kRefused = 126;

void refuse(const base::UniqueFd& connection, const base::Error& error) {
  (void)wire::send_message(connection.borrow(),
                           wire::NotStarted{kRefused, error.code, error.message()}, {},
                           MSG_DONTWAIT);
}

void fail(FrameSession& session, const base::Error& error) {
  const json answer = {{"ok", false},
                       {"error", {{"errno", error.code}, {"message", error.message()}}}};
  session.send(wire::MessageType::control_reply, wire::encode(wire::ControlReply{answer.dump()}));
}

/// The answer, good or bad, goes over the job's own socket.
void exec(Daemon& daemon, const Peer& peer, wire::KeptExec order, std::vector<base::UniqueFd> fds,
          ApiRequest asked_by) {
  const auto accepted = std::chrono::steady_clock::now();
  const std::size_t kept_count = order.streams.count();
  if (fds.size() < kept_count + 1) return;  // not even a connection to answer on
  JobStore::Kept kept{std::move(order.note), std::move(order.streams), {}};
  for (std::size_t i = fds.size() - kept_count; i < fds.size(); ++i) {
    kept.fds.push_back(std::move(fds[i]));
  }
  fds.resize(fds.size() - kept_count);
  base::UniqueFd connection = std::move(fds.back());
  fds.pop_back();
  if (auto added = daemon.job_store().add(order.key, std::move(kept)); !added) {
    return refuse(connection, added.error());
  }
  daemon.router().run(peer,
                      {wire::MessageType::exec_request, std::move(order.request), std::move(fds)},
                      std::move(connection), accepted, std::move(asked_by));
}

void attach(Daemon& daemon, FrameSession& session, const std::string& key) {
  const auto* kept = daemon.job_store().find(key);
  if (kept == nullptr) return fail(session, {"attach to a kept job", ENOENT, {}});
  std::vector<int> fds;
  for (const auto& fd : kept->fds) fds.push_back(fd.borrow());
  auto sent = wire::send_message(session.socket(), wire::Attached{key, kept->note, kept->streams},
                                 fds, MSG_DONTWAIT);
  // Part of it may be out. Only a client that does not read its answers gets here.
  if (!sent) session.close();
}

void note(Daemon& daemon, wire::KeepNote order, std::vector<base::UniqueFd> fds) {
  (void)daemon.job_store().update(
      order.key, {std::move(order.note), std::move(order.streams), std::move(fds)});
}

void release(Daemon& daemon, const wire::Release& order) {
  if (order.stream.empty()) {
    daemon.job_store().release(order.key);
  } else {
    daemon.job_store().release_stream(order.key, order.stream);
  }
}

/// Acts on a message; one that is none ends the connection.
template <class Message, class Action>
Served serve(FrameSession& session, const wire::Frame& frame, Action action) {
  auto message = wire::decode<Message>(frame.payload);
  if (!message) {
    fail(session, message.error());
    session.close();
    return Served::closed;
  }
  action(std::move(*message));
  return Served::yes;
}

}  // namespace

Served serve_kept_jobs(Daemon& daemon, FrameSession& session, const Peer& peer, wire::Frame& frame,
                       ApiRequest& asked_by) {
  switch (frame.type) {
    case wire::MessageType::kept_exec:
      return serve<wire::KeptExec>(session, frame, [&](wire::KeptExec order) {
        exec(daemon, peer, std::move(order), std::move(frame.fds), std::exchange(asked_by, {}));
      });
    case wire::MessageType::keep_note:
      return serve<wire::KeepNote>(session, frame, [&](wire::KeepNote order) {
        note(daemon, std::move(order), std::move(frame.fds));
      });
    case wire::MessageType::attach:
      return serve<wire::Attach>(
          session, frame, [&](const wire::Attach& wanted) { attach(daemon, session, wanted.key); });
    case wire::MessageType::release:
      return serve<wire::Release>(session, frame,
                                  [&](const wire::Release& over) { release(daemon, over); });
    default:
      return Served::no;
  }
}

}  // namespace routerd
