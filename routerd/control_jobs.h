#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "routerd/daemon.h"

namespace routerd {

/// The control verbs of jobs and shells (docs/PROTOCOL.md §10). They ask a context's init and the
/// hosts of its shells, so their answers come later: `reply` is called once, with the answer
/// without "ok".
using Reply = std::function<void(base::Result<nlohmann::json>)>;

void list_jobs(Daemon& daemon, HostedContext& hosted, const Reply& reply);
/// Whether a program runs in the context: not what shells have left in the background, and true if
/// nobody answers. `then` is called once, later.
void runs_anything(Daemon& daemon, HostedContext& hosted, const std::function<void(bool)>& then);
void signal_job(Daemon& daemon, HostedContext& hosted, const nlohmann::json& body,
                const Reply& reply);
/// Calls `then` with the pid, as the context knows it, of a job of the context's spawner; else
/// `reply` is told. ESRCH: there is none (commands of shells are no such jobs).
void with_job_pid(Daemon& daemon, HostedContext& hosted, std::uint64_t job, const Reply& reply,
                  std::function<void(pid_t)> then);
/// `peer` tells which of them are its own.
void list_shells(HostedContext& hosted, const Peer& peer, Reply reply);
/// Starts a shell of `peer`'s ahead of its first command, unless it is there: {started}. It has
/// been ordered then; the shell itself starts with the first command. EINVAL: no name of a shell;
/// else as Shells::start.
base::Result<nlohmann::json> start_shell(Daemon& daemon, HostedContext& hosted, const Peer& peer,
                                         const nlohmann::json& body);
/// Of the shell that `peer` would use.
void interrupt_shell(HostedContext& hosted, const Peer& peer, const nlohmann::json& body,
                     const Reply& reply);
void reset_shell(HostedContext& hosted, const Peer& peer, const nlohmann::json& body,
                 const Reply& reply);

}  // namespace routerd
