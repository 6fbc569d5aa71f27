#pragma once

#include <map>
#include <memory>

#include "contexts/context.h"
#include "routerd/context_door.h"
#include "routerd/enforcement.h"
#include "routerd/env_route.h"
#include "routerd/farm_keeper.h"
#include "routerd/handover.h"
#include "routerd/launch.h"
#include "routerd/lifetime.h"
#include "routerd/listener.h"
#include "routerd/shells.h"

namespace routerd {

/// A context and what the daemon keeps for it.
struct HostedContext {
  std::unique_ptr<contexts::Context> context;
  std::unique_ptr<Listener> router;
  /// Null where its programs have no way to the API.
  std::unique_ptr<ContextDoor> door;
  std::unique_ptr<Handover> handover;
  /// The stub its programs are replaced by.
  FileId stub_id;
  std::string stub_path;
  /// The shims of its agents; null without a farm.
  std::unique_ptr<FarmKeeper> farm;
  /// From the configuration and not used yet: a `ctx create` of its name may replace it.
  bool is_claimable = false;
  Launches launches;
  /// What may enforce routing here; empty without a route.
  Offers offers;
  /// How its children's environment is made, per launch and target; built at first use, dropped
  /// when a context changes.
  std::map<std::pair<std::uint64_t, std::string>, EnvRoute> env_routes;
  std::shared_ptr<Shells> shells;
  /// Puts airlock-files where the context sees it, unless it is there.
  std::function<base::Result<void>()> add_file_tool;
  std::shared_ptr<Lifetime> lifetime;
  /// Waiting for an answer of the init, by serial.
  std::map<std::uint64_t, std::function<void(wire::JobList)>> job_questions;

  const contexts::ContextSpec& spec() const { return context->spec(); }
};

}  // namespace routerd
