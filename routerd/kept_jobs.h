#pragma once

#include "routerd/frame_session.h"
#include "routerd/peer.h"
#include "routerd/route_log.h"

namespace routerd {

class Daemon;

/// What became of a frame: served; of another kind; malformed, so that the connection was closed.
enum class Served { yes, no, closed };

/// Serves the messages of the job store: KeptExec, KeepNote, Attach, Release (docs/PROTOCOL.md).
/// `peer` is who the programs run as. `asked_by` is used up by the next one.
Served serve_kept_jobs(Daemon& daemon, FrameSession& session, const Peer& peer, wire::Frame& frame,
                       ApiRequest& asked_by);

}  // namespace routerd
