#include "routerd/profiles.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

namespace routerd {
namespace {

constexpr std::string_view kSuffix = ".yaml";

/// NAME.yaml files of `folder`, sorted. An error for what can be seen but not listed.
std::vector<std::string> files_of(const std::string& folder, std::vector<ConfigError>& errors) {
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.ends_with(kSuffix) && !name.starts_with('.')) files.push_back(entry->path());
  }
  if (error && error.value() != ENOENT && error.value() != ENOTDIR) {
    errors.push_back({folder, 0, 0, "cannot be read: " + error.message()});
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string variable_of_process(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

tl::expected<Profiles, std::vector<ConfigError>> Profiles::load(
    const std::vector<std::string>& folders) {
  Profiles profiles;
  profiles.folders_ = folders;
  std::vector<ConfigError> errors;
  std::map<std::string, bool> seen;
  for (const auto& folder : folders) {
    for (const auto& file : files_of(folder, errors)) {
      if (!seen.emplace(file.substr(file.rfind('/') + 1), true).second) continue;
      auto profile = load_profile(file);
      if (profile) {
        profiles.profiles_.push_back(std::make_shared<const AgentProfile>(std::move(*profile)));
      } else {
        errors.insert(errors.end(), profile.error().begin(), profile.error().end());
      }
    }
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return profiles;
}

std::shared_ptr<const AgentProfile> Profiles::of_file(const std::string& path,
                                                      const std::string& home) const {
  for (const auto& profile : profiles_) {
    if (!package_of(*profile, path, home).empty()) return profile;
  }
  return nullptr;
}

std::shared_ptr<const AgentProfile> Profiles::of_command(std::string_view name) const {
  for (const auto& profile : profiles_) {
    if (std::ranges::find(profile->commands, name) != profile->commands.end()) return profile;
  }
  return nullptr;
}

std::string escape_glob(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string package_of(const AgentProfile& profile, const std::string& path,
                       const std::string& home) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    std::string folder = path.substr(0, end);
    for (std::string pattern : profile.packages) {
      if (pattern.starts_with("~/")) {
        if (home.empty()) continue;
        pattern.replace(0, 1, escape_glob(home));
      }
      if (::fnmatch(pattern.c_str(), folder.c_str(), 0) == 0) return folder;
    }
  }
  return {};
}

std::vector<std::string> profile_folders(const std::string& programs) {
  std::vector<std::string> folders;
  if (auto own = variable_of_process("AIRLOCK_PROFILES"); own.starts_with('/')) {
    folders.push_back(std::move(own));
  }
  const std::string config = variable_of_process("XDG_CONFIG_HOME");
  const std::string home = variable_of_process("HOME");
  if (config.starts_with('/')) {
    folders.push_back(config + "/airlock/profiles");
  } else if (home.size() > 1 && home.starts_with('/')) {
    folders.push_back(home + "/.config/airlock/profiles");
  }
  folders.emplace_back("/etc/airlock/profiles");
  // A build tree has them beside the programs, an installation in share/.
  const std::string beside = programs + "/profiles";
  const std::filesystem::path installed(programs + "/../../share/airlock/profiles");
  folders.push_back(is_folder(beside) ? beside : installed.lexically_normal().string());
  return folders;
}

}  // namespace routerd
