#pragma once

// All profiles of a daemon, and where they come from.

#include <memory>
#include <string>
#include <vector>

#include "routerd/profile.h"

namespace routerd {

class Profiles {
 public:
  /// Reads the NAME.yaml files of `folders`; of equal names the one in the earlier folder counts. A
  /// folder that is missing is empty. Blocking. All errors of all files.
  static tl::expected<Profiles, std::vector<ConfigError>> load(
      const std::vector<std::string>& folders);

  const std::vector<std::shared_ptr<const AgentProfile>>& all() const { return profiles_; }
  /// The folders they were looked for in.
  const std::vector<std::string>& folders() const { return folders_; }

  /// The profile whose packages the resolved `path` lies in, or nullptr. `home` stands for "~".
  std::shared_ptr<const AgentProfile> of_file(const std::string& path,
                                              const std::string& home) const;
  /// The profile one of whose commands is `name`, or nullptr.
  std::shared_ptr<const AgentProfile> of_command(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const AgentProfile>> profiles_;
  std::vector<std::string> folders_;
};

/// The outermost folder of `path` that is one of the profile's packages; empty if none is.
std::string package_of(const AgentProfile& profile, const std::string& path,
                       const std::string& home);

/// A glob(7) or fnmatch(3) pattern that matches `text` only.
std::string escape_glob(const std::string& text);

/// Where profiles are looked for, in this order: AIRLOCK_PROFILES, ~/.config/airlock/profiles (or
/// XDG_CONFIG_HOME's), /etc/airlock/profiles, and those that come with the programs in the folder
/// `programs`.
std::vector<std::string> profile_folders(const std::string& programs);

}  // namespace routerd
