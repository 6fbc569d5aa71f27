#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "contexts/tier.h"

namespace routerd {

// What a person is told about a tier: at a refused start, by `airlock doctor`, in docs/SECURITY.md.

/// What contexts of `tier` do not have that those of `namespaces` have; one line.
std::string_view weakness_of(contexts::Tier tier);

/// What has to be added to get `tier`, per way to run a container or not.
struct TierOptions {
  std::string_view docker;
  std::string_view podman;
  std::string_view kubernetes;
  std::string_view host;
};
TierOptions options_for(contexts::Tier tier);
/// The same as {"docker": …, "podman": …, "kubernetes": …, "host": …}.
nlohmann::json options_json(contexts::Tier tier);

/// Whether a context of `tier` can change the programs that the platform runs: "yes: …" if it
/// cannot, else "no: …".
std::string_view integrity_of(contexts::Tier tier, bool has_own_rootfs);

/// How to get isolated contexts, in one line.
std::string way_to_isolation();

}  // namespace routerd
