#include "contexts/init/rootfs.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "contexts/init/mount_calls.h"
#include "contexts/init/overlay.h"

namespace contexts::init {
namespace {

using base::Result;
using std::string_view;

/// What is bound from now on does not bring `root` along, where it lies below: such a copy would
/// have the parent's procfs in it, out of reach. Until pivot() makes it private again.
Result<void> keep_out_of_binds(const std::string& root) {
  if (::mount("none", root.c_str(), nullptr, MS_UNBINDABLE, nullptr) != 0) {
    return base::os_error("make " + root + " unbindable");
  }
  return {};
}

std::string resolved(string_view path) {
  char result[PATH_MAX];
  return ::realpath(std::string(path).c_str(), result) != nullptr ? result : "";
}

Result<void> empty_tmp(const wire::Setup& setup, const char* path) {
  struct stat info {};
  const std::string target = setup.root_dir + path;
  if (::lstat(target.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};
  std::string options = "mode=1777";
  if (setup.tmpfs_bytes != 0) options += ",size=" + std::to_string(setup.tmpfs_bytes);
  if (::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return base::os_error(std::string("mount a private ") + path);
  }
  return {};
}

bool is_below(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/");
}

Result<void> make_folders_to(const std::string& root, const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = root + path.substr(0, at);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return base::os_error("mkdir " + folder);
    }
  }
  return {};
}

/// What lies below /tmp and is needed all the same: the working folder, what is shared.
Result<void> keep_in_tmp(const wire::Setup& setup, string_view path) {
  const std::string real = resolved(path);
  if (!is_below(real, "/tmp") && !is_below(real, "/var/tmp")) return {};
  const std::string target = setup.root_dir + real;
  if (auto made = make_folders_to(setup.root_dir, real); !made) return made;
  struct stat info {};
  if (::stat(real.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(target.c_str(), 0755) != 0 && errno != EEXIST)
      return base::os_error("mkdir " + target);
  } else if (auto made = base::write_file(target, "", 0600); !made) {
    return made;
  }
  return bind_tree(real, target);
}

}  // namespace

Result<std::vector<std::string>> make_root(const wire::Setup& setup, const IdMap& ids,
                                           wire::Ready& ready) {
  std::vector<std::string> overlaid;
  auto done = bind_tree("/", setup.root_dir);
  if (done) done = keep_out_of_binds(setup.root_dir);
  if (done && !setup.upper_dir.empty()) {
    auto mounted = mount_overlays(setup, ids, ready);
    if (!mounted) return mounted;
    overlaid = std::move(*mounted);
  }
  for (const char* path : {"/tmp", "/var/tmp"}) {
    if (done && setup.private_tmp) done = empty_tmp(setup, path);
  }
  for (const auto path : setup.same.views()) {
    if (done && setup.private_tmp) done = keep_in_tmp(setup, path);
  }
  if (!done) return tl::unexpected<base::Error>(done.error());
  return overlaid;
}

}  // namespace contexts::init
