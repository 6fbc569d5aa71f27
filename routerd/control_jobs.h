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
void list_shells(HostedContext& hosted, Reply reply);
/// Of the shell that `peer` would use.
void interrupt_shell(HostedContext& hosted, const Peer& peer, const nlohmann::json& body,
                     const Reply& reply);
void reset_shell(HostedContext& hosted, const Peer& peer, const nlohmann::json& body,
                 const Reply& reply);

}  // namespace routerd
