#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/context.h"
#include "contexts/mechanism.h"

// Which mechanism enforces the routing of an agent. Choosing is pure; what a mechanism needs is
// found by trying when the context is made.
namespace routerd {

/// Whether a context can use one mechanism.
struct Offer {
  contexts::Mechanism mechanism = contexts::Mechanism::preload;
  /// Why it cannot be used; empty = it works.
  std::string why_not;
  /// Ways to start a program that it does not stop, a line each (docs/ARCHITECTURE.md has the
  /// whole table).
  std::vector<std::string> not_stopped;

  bool works() const { return why_not.empty(); }
};

/// One for each of contexts::kMechanisms.
using Offers = std::vector<Offer>;

/// What `context`, which stands, can use.
Offers offers_of(const contexts::Context& context);

/// What a context of `tier` could use, found by making one. Empty if none can be made.
Offers probe_offers(contexts::Tier tier, const contexts::RuntimeDir& runtime,
                    const std::string& programs);

/// Takes the mechanism for an agent: the one that is `wanted`, or else the best for its kind that
/// works: farm or the interposer alone for a dynamic agent, binfmt, farm or ptrace for a static
/// one, which the interposer cannot see. ENOTSUP, saying what each lacks, if there is none; only
/// with `development` the interposer is taken all the same.
base::Result<Offer> choose_mechanism(contexts::Enforce wanted, const Offers& offers, bool is_static,
                                     bool development);

/// {wanted, dynamic, static, mechanisms: [{mechanism, works, reason, notStopped}]}: what agents of
/// each kind get, null for none.
nlohmann::json enforcement_json(contexts::Enforce wanted, const Offers& offers);
nlohmann::json to_json(const Offers& offers);

}  // namespace routerd
