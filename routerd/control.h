#pragma once

#include <memory>

#include "routerd/daemon.h"
#include "routerd/frame_session.h"

namespace routerd {

/// Where a client has come in: the daemon's own socket, or the one for the API's program, which may
/// not do everything.
enum class Door { client, api };

/// Serves one client of the control socket: control verbs (docs/PROTOCOL.md) answered one by one,
/// or one exec request, with which the connection is handed over. Not started yet.
std::shared_ptr<FrameSession> serve_client(Daemon& daemon, boost::asio::io_context& io, Peer peer,
                                           base::UniqueFd socket, Door door = Door::client);

}  // namespace routerd
