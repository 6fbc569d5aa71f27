#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace contexts {

/// What keeps the programs an agent starts from running unrouted (docs/ARCHITECTURE.md, "Routing
/// layers"). The interposer is beside each of them; `preload` is the interposer alone. The numbers
/// travel in wire::Confinement.
enum class Mechanism : std::uint8_t { preload = 0, farm = 1, binfmt = 2, ptrace = 3 };

/// What a context's `enforce:` asks for; nothing = the strongest that works (auto).
using Enforce = std::optional<Mechanism>;

constexpr Mechanism kMechanisms[] = {Mechanism::preload, Mechanism::farm, Mechanism::binfmt,
                                     Mechanism::ptrace};

constexpr std::string_view name_of(Mechanism mechanism) {
  constexpr std::string_view names[] = {"preload", "farm", "binfmt", "ptrace"};
  return names[static_cast<std::size_t>(mechanism)];
}

constexpr std::string_view name_of(Enforce wanted) { return wanted ? name_of(*wanted) : "auto"; }

/// "auto" or the name of a mechanism; nothing for any other word.
constexpr std::optional<Enforce> parse_enforce(std::string_view word) {
  if (word == "auto") return Enforce{};
  for (const Mechanism mechanism : kMechanisms) {
    if (word == name_of(mechanism)) return Enforce{mechanism};
  }
  return std::nullopt;
}

}  // namespace contexts
