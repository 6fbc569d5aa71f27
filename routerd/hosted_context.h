#pragma once

#include <map>
#include <memory>

#include "contexts/context.h"
#include "routerd/handover.h"
#include "routerd/launch.h"
#include "routerd/listener.h"

namespace routerd {

/// A context and what the daemon keeps for it.
struct HostedContext {
  std::unique_ptr<contexts::Context> context;
  std::unique_ptr<Listener> router;
  std::unique_ptr<Handover> handover;
  /// The stub its programs are replaced by.
  FileId stub_id;
  /// From the configuration and not used yet: a `ctx create` of its name may replace it.
  bool is_claimable = false;
  Launches launches;
  /// What its children's environment is filtered by, per launch and target; built at first use.
  std::map<std::pair<std::uint64_t, std::string>, contexts::EnvFilter> filters;
  /// Waiting for an answer of the init, by serial.
  std::map<std::uint64_t, std::function<void(wire::JobList)>> job_questions;

  const contexts::ContextSpec& spec() const { return context->spec(); }
};

}  // namespace routerd
