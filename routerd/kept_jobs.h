#pragma once

#include "routerd/frame_session.h"
#include "routerd/peer.h"

namespace routerd {

class Daemon;

/// What became of a frame: served; of another kind; malformed, so that the connection was closed.
enum class Served { yes, no, closed };

/// Serves the messages of the job store: KeptExec, KeepNote, Attach, Release (docs/PROTOCOL.md).
/// `peer` is who the programs run as.
Served serve_kept_jobs(Daemon& daemon, FrameSession& session, const Peer& peer, wire::Frame& frame);

}  // namespace routerd
