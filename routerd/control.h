#pragma once

#include <memory>

#include "routerd/daemon.h"
#include "routerd/frame_session.h"

namespace routerd {

/// Serves one client of the control socket: control verbs (docs/PROTOCOL.md) answered one by one,
/// or one exec request, with which the connection is handed over. Not started yet.
std::shared_ptr<FrameSession> serve_client(Daemon& daemon, boost::asio::io_context& io, Peer peer,
                                           base::UniqueFd socket);

}  // namespace routerd
