#pragma once

#include <string>
#include <string_view>

namespace contexts {

/// What belongs to the system, and with `rootfs: overlay` to each context for itself: where
/// packages are installed and what they are configured by. Everything else, projects and data
/// wherever they lie, is the same for all. The short ones are symlinks below /usr in most systems.
constexpr std::string_view kSystemFolders[] = {"/usr",       "/etc",   "/opt",   "/var/lib",
                                               "/var/cache", "/bin",   "/sbin",  "/lib",
                                               "/lib32",     "/lib64", "/libx32"};

/// Below a system folder, and everybody's all the same: images have applications there.
constexpr std::string_view kSharedFolders[] = {"/usr/src", "/usr/local/src"};

/// `path` is `folder` or lies below it. Both absolute, without a '/' at the end.
constexpr bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// Where, below a context's upper folder, the layers of one system folder are: "/var/lib" has
/// "var-lib/upper" and "var-lib/work".
inline std::string layers_of(std::string_view system_folder) {
  std::string name(system_folder.substr(1));
  for (char& each : name) {
    if (each == '/') each = '-';
  }
  return name;
}

/// The folder that holds what a context with the upper folder `upper` has changed in `folder`;
/// empty if that lies in no system folder.
inline std::string upper_of(const std::string& upper, std::string_view folder) {
  for (const auto system : kSystemFolders) {
    if (!is_within(folder, system)) continue;
    return upper + "/" + layers_of(system) + "/upper" + std::string(folder.substr(system.size()));
  }
  return "";
}

}  // namespace contexts
