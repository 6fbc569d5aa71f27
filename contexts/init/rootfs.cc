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
#include "contexts/init/mount_table.h"

namespace contexts::init {
namespace {

using base::Result;
using std::string_view;

Result<void> bind_tree(const std::string& source, const std::string& target) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return base::os_error("bind " + source + " into the context's root");
  }
  return {};
}

/// Mounts directly on the root file system: an overlay over that would show the folders below.
Result<void> bind_other_mounts(const wire::Setup& setup) {
  const auto mounts = own_mounts();
  if (!mounts) return tl::unexpected<base::Error>(mounts.error());
  string_view root;
  for (const auto& mount : *mounts) {
    if (mount.point == "/") root = mount.id;  // the last one is on top
  }
  for (const auto& [id, parent, device, point, type] : *mounts) {
    const bool is_ours = point == setup.root_dir || point == setup.upper_dir;
    if (parent != root || point == "/" || is_ours) continue;
    if (::access(point.c_str(), F_OK) != 0) continue;  // below another mount
    if (auto bound = bind_tree(point, setup.root_dir + point); !bound) return bound;
  }
  return {};
}

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

/// `path` is the real one. A path that is the root itself cannot be kept, nor one that is not
/// there.
Result<void> keep(const wire::Setup& setup, string_view path) {
  const std::string real = resolved(path);
  if (real.empty() || real == "/") return {};
  return bind_tree(real, setup.root_dir + real);
}

/// The lower layer: an overlay cannot be idmapped, but what it lies on can (Linux 5.19). The
/// overlay is mounted over that, then.
Result<std::string> lower_layer(const wire::Setup& setup, const IdMap& ids) {
  if (!ids) return "/";
  auto root = ids.mapped("/");
  if (!root) return tl::unexpected<base::Error>(root.error());
  if (const long moved = move_mount(root->borrow(), AT_FDCWD, setup.root_dir.c_str()); moved < 0) {
    return base::failure("attach the lower layer", static_cast<int>(-moved));
  }
  return setup.root_dir;
}

/// The upper layer: on the runtime folder's file system if that can be one, else in memory.
Result<void> mount_overlay(const wire::Setup& setup, const IdMap& ids, wire::StringList& lacks) {
  const auto lower = lower_layer(setup, ids);
  if (!lower) return tl::unexpected<base::Error>(lower.error());
  const auto attempt = [&](const char* more) {
    const std::string upper = setup.upper_dir + "/upper";
    // It is the face of "/".
    if (ids && ::chown(upper.c_str(), ids.first(), ids.first()) != 0) return false;
    const std::string options = "lowerdir=" + *lower + ",upperdir=" + upper +
                                ",workdir=" + setup.upper_dir + "/work" + more;
    return ::mount("overlay", setup.root_dir.c_str(), "overlay", 0, options.c_str()) == 0;
  };
  // What a crash would lose is gone with the context anyway: no time for sync(2).
  constexpr const char* kQuick = ",redirect_dir=on,volatile";
  if (attempt(kQuick) || attempt(",redirect_dir=on")) return {};
  std::string options = "mode=0700";
  if (setup.tmpfs_bytes != 0) options += ",size=" + std::to_string(setup.tmpfs_bytes);
  if (::mount("tmpfs", setup.upper_dir.c_str(), "tmpfs", MS_NODEV, options.c_str()) != 0) {
    return base::os_error("mount a tmpfs for what the context changes");
  }
  for (const char* folder : {"/upper", "/work"}) {
    if (::mkdir((setup.upper_dir + folder).c_str(), 0755) != 0) {
      return base::os_error("mkdir " + setup.upper_dir + folder);
    }
  }
  if (attempt(kQuick) || attempt("")) {
    lacks.add("what it changes in the root file system is kept in memory: " + setup.runtime_dir +
              " lies on a file system that cannot be an upper layer");
    return {};
  }
  return base::os_error("mount an overlay over the root file system",
                        "'rootfs: shared' does without");
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

Result<void> make_root(const wire::Setup& setup, const IdMap& ids, wire::StringList& lacks) {
  Result<void> done;
  if (setup.upper_dir.empty()) {
    done = bind_tree("/", setup.root_dir);
    if (done) done = keep_out_of_binds(setup.root_dir);
  } else {
    done = mount_overlay(setup, ids, lacks);
    if (done) done = keep_out_of_binds(setup.root_dir);
    if (done) done = bind_other_mounts(setup);
    for (const auto path : setup.same.views()) {
      if (done) done = keep(setup, path);
    }
  }
  if (!done || !setup.private_tmp) return done;
  for (const char* path : {"/tmp", "/var/tmp"}) {
    if (done) done = empty_tmp(setup, path);
  }
  for (const auto path : setup.same.views()) {
    if (done) done = keep_in_tmp(setup, path);
  }
  return done;
}

}  // namespace contexts::init
