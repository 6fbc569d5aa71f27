#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace contexts {

/// What belongs to the system, and with `rootfs: overlay` to each context for itself: where
/// packages are installed and what they are configured by. Everything else, projects and data
/// wherever they lie, is the same for all. The short ones are symlinks below /usr in most systems.
constexpr std::string_view kSystemFolders[] = {"/usr",       "/etc",       "/opt",   "/var/lib",
                                               "/var/cache", "/var/spool", "/bin",   "/sbin",
                                               "/lib",       "/lib32",     "/lib64", "/libx32"};

/// Can be neither removed nor replaced in such a context: whoever renames /var takes /var/lib away.
constexpr std::string_view kPinnedPaths[] = {"/var",   "/bin",    "/sbin",    "/lib",     "/lib32",
                                             "/lib64", "/libx32", "/var/run", "/var/lock"};

/// Below a system folder, and everybody's all the same: images have applications there.
constexpr std::string_view kSharedFolders[] = {"/usr/src", "/usr/local/src"};

/// `path` is `folder` or lies below it. Both absolute, without a '/' at the end.
constexpr bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// Where something in a system folder is in an upper layer: the layer's own folder, which stays
/// what it is, and the path from there, where the context makes what it likes.
struct UpperPath {
  std::string layer, below;
};

/// Below a context's upper folder, the layers of what lies on the file system mounted at `point`:
/// of "/" they are "root/upper" and "root/work", of "/var" "root-var/upper" and "root-var/work".
inline std::string layers_of(std::string_view point) {
  std::string name = "root";
  if (point != "/") name += point;
  for (char& each : name) {
    if (each == '/') each = '-';
  }
  return name;
}

/// In the context with the upper folder `upper`; nothing for a `path` that lies in no system
/// folder. Of what is on the root's file system, as programs are.
inline std::optional<UpperPath> upper_path(const std::string& upper, std::string_view path) {
  for (const auto system : kSystemFolders) {
    if (!is_within(path, system)) continue;
    return UpperPath{upper + "/" + layers_of("/") + "/upper", std::string(path.substr(1))};
  }
  return std::nullopt;
}

}  // namespace contexts
