#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/context.h"
#include "contexts/runtime_dir.h"
#include "contexts/tier.h"

namespace contexts {

// What works on this machine, found by making contexts and destroying them. Blocking: some
// milliseconds for each context, and no longer than kReadyDeadlineMs.

/// A tier that works here, and the context that showed it. That one is ending; its destructor waits
/// for it.
struct ProbedTier {
  Tier tier = Tier::none;
  std::unique_ptr<Context> ending;
};

/// The strongest tier this process can have here, found by making a context in each, strongest
/// first; none if none works. `reasons` gets a line for each tier that failed.
ProbedTier probe_tier(const RuntimeDir& runtime, const std::string& programs,
                      std::vector<std::string>& reasons);

/// What would keep a limit here, or why nothing does.
struct LimitOffer {
  std::string name;
  std::string by;
  std::string error;
};

/// Found by making a context of `tier` with each limit.
std::vector<LimitOffer> probe_limits(Tier tier, const RuntimeDir& runtime,
                                     const std::string& programs);

/// Makes a context of `tier`, and begins to destroy it. The error says what is missing.
base::Result<ProbedTier> probe_one(Tier tier, const RuntimeDir& runtime,
                                   const std::string& programs);

/// Whether `rootfs: overlay` works here, and where it keeps what a context changes.
struct OverlayOffer {
  bool works = false;
  /// Why it does not work; else what is to be known about it, or empty.
  std::string remark;
};
OverlayOffer probe_overlay(Tier tier, const RuntimeDir& runtime, const std::string& programs);

}  // namespace contexts
