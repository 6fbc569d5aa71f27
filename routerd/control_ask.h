#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "routerd/daemon.h"
#include "routerd/frame_session.h"

// How control verbs are answered (docs/PROTOCOL.md, 10).
namespace routerd {

/// What a verb needs to answer.
struct Ask {
  Daemon& daemon;
  FrameSession& session;
  const Peer& peer;
  const nlohmann::json& body;
  /// What this connection has said about the next program it asks for.
  ApiRequest& asked_by;
};

using Verb = void (*)(const Ask& ask);

/// As text; bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);

/// Sends the answer, with "ok".
void reply(FrameSession& session, nlohmann::json answer);
void fail(FrameSession& session, const base::Error& error);
void reply_or_fail(const Ask& ask, base::Result<nlohmann::json> answer);

}  // namespace routerd
