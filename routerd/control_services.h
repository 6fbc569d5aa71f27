#pragma once

#include <nlohmann/json.hpp>

#include "routerd/daemon.h"
#include "routerd/frame_session.h"

namespace routerd {

/// The control verbs of services (docs/PROTOCOL.md §10): their replies, without "ok".
nlohmann::json list_services(Daemon& daemon);
base::Result<nlohmann::json> restart_service(Daemon& daemon, const nlohmann::json& body);
/// The end of the log; with `follow`, what is added goes to `session` as Events until it closes.
base::Result<nlohmann::json> service_log(Daemon& daemon, FrameSession& session,
                                         const nlohmann::json& body);
base::Result<nlohmann::json> reload(Daemon& daemon);

}  // namespace routerd
