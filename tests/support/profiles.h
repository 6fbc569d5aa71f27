#pragma once

#include <stdexcept>

#include "routerd/profiles.h"
#include "tests/support/context_client.h"

namespace support {

/// The profiles that airlock ships.
inline routerd::Profiles shipped_profiles() {
  auto profiles = routerd::Profiles::load({programs_folder() + "/profiles"});
  if (!profiles) throw std::runtime_error(profiles.error().front().render());
  if (profiles->all().empty()) throw std::runtime_error("no profiles beside the programs");
  return std::move(*profiles);
}

}  // namespace support
