#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace contexts {

/// What a context is isolated by, strongest first (docs/ARCHITECTURE.md, "Tiers"). The numbers
/// travel in wire::Setup.
enum class Tier : std::uint8_t { namespaces = 0, userns = 1, uids = 2, landlock = 3, none = 4 };

constexpr std::string_view name_of(Tier tier) {
  constexpr std::string_view names[] = {"namespaces", "userns", "uids", "landlock", "none"};
  return names[static_cast<std::size_t>(tier)];
}

constexpr std::optional<Tier> parse_tier(std::string_view name) {
  for (const Tier tier : {Tier::namespaces, Tier::userns, Tier::uids, Tier::landlock, Tier::none}) {
    if (name == name_of(tier)) return tier;
  }
  return std::nullopt;
}

/// True for the tiers in which a context has a PID namespace of its own.
constexpr bool is_isolated(Tier tier) { return tier == Tier::namespaces || tier == Tier::userns; }

/// The user ids that contexts of tier `uids` are given (contexts/uid_lease.h): the end of what
/// adduser(8) hands out, and still within the 65536 that most user namespaces have mapped.
constexpr std::uint32_t kFirstOwnUid = 59000;
constexpr std::uint32_t kLastOwnUid = 59999;
/// Never an owner of anything: see contexts/init/confine.cc.
constexpr std::uint32_t kKillerUid = 58999;

}  // namespace contexts
