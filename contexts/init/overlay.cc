#include "contexts/init/overlay.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "contexts/init/mount_calls.h"
#include "contexts/init/mount_table.h"
#include "contexts/system_folders.h"

namespace contexts::init {
namespace {

using base::Result;
using std::string_view;

std::string resolved(const std::string& path) {
  char result[PATH_MAX];
  return ::realpath(path.c_str(), result) != nullptr ? result : "";
}

bool is_real_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_link(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

/// Makes one context's overlays: one of each file system that system folders are on, of which these
/// folders are bound. One of each folder would do the same, at half a millisecond each.
class Overlays {
 public:
  Overlays(const wire::Setup& setup, const IdMap& ids, std::vector<MountEntry> mounts)
      : setup_(setup), ids_(ids), mounts_(std::move(mounts)) {}

  /// With all layers at setup.upper_dir; of a failure nothing is left.
  Result<void> mount_all() {
    auto done = pin_all();
    for (const auto& [point, folders] : by_mount()) {
      if (done) done = mount_one(point, folders);
    }
    if (!done) undo();
    return done;
  }

  /// What in the overlays is to be the real one.
  Result<void> keep_the_real_ones() const {
    Result<void> done;
    for (const auto& mount : mounts_) {
      if (done && is_outermost(mount)) done = bind_tree(mount.point, setup_.root_dir + mount.point);
    }
    for (const auto folder : kSharedFolders) {
      if (done) done = keep(std::string(folder));
    }
    for (const auto path : setup_.same.views()) {
      if (done) done = keep(std::string(path));
    }
    return done;
  }

  /// System folders that are left to the platform.
  std::string shared_mounts() const {
    std::string names;
    for (const auto each : kSystemFolders) {
      const std::string folder(each);
      if (is_real_folder(folder) && is_mount(folder)) names += (names.empty() ? "" : ", ") + folder;
    }
    return names;
  }

  std::vector<std::string> take() { return std::move(made_); }

 private:
  bool is_mount(const std::string& path) const {
    return std::any_of(mounts_.begin(), mounts_.end(),
                       [&path](const MountEntry& mount) { return mount.point == path; });
  }

  bool is_below_an_overlay(string_view path) const {
    return std::any_of(made_.begin(), made_.end(), [path](const std::string& folder) {
      return path != folder && is_within(path, folder);
    });
  }

  /// A mount in an overlaid folder that comes along with no other.
  bool is_outermost(const MountEntry& mount) const {
    const bool is_ours =
        is_within(mount.point, setup_.root_dir) || is_within(mount.point, setup_.upper_dir);
    if (is_ours || !is_below_an_overlay(mount.point)) return false;
    const auto parent = std::find_if(mounts_.begin(), mounts_.end(), [&mount](const auto& other) {
      return other.id == mount.parent;
    });
    if (parent != mounts_.end() && is_below_an_overlay(parent->point)) return false;
    return ::access(mount.point.c_str(), F_OK) == 0;  // else it lies below another mount
  }

  /// A mount point can be neither removed nor renamed by who sees it mounted (EBUSY, rename(2)).
  Result<void> pin_all() {
    Result<void> done;
    for (const auto each : kPinnedPaths) {
      const std::string path(each);
      if (!done || is_mount(path)) continue;
      if (is_real_folder(path)) {
        done = attach(open_tree(AT_FDCWD, path.c_str(), kCloneTree | AT_RECURSIVE), path);
      } else if (is_link(path)) {
        done = pin_link(path);
      }
    }
    return done;
  }

  /// Read-only, nosuid and nodev, which following it does not pass on: bubblewrap would add them by
  /// a path, which leads to the link's target, and give up.
  Result<void> pin_link(const std::string& path) {
    constexpr struct {
      std::uint64_t set, clear, propagation, user_namespace;
    } kAttributes{1 | 2 | 4, 0, 0, 0};  // MOUNT_ATTR_RDONLY, _NOSUID, _NODEV of linux/mount.h
    const long tree = open_tree(AT_FDCWD, path.c_str(), kCloneTree | AT_SYMLINK_NOFOLLOW);
    if (tree >= 0) {  // before Linux 5.12 they stay as they are
      (void)::syscall(SYS_mount_setattr, static_cast<int>(tree), "", AT_EMPTY_PATH, &kAttributes,
                      sizeof kAttributes);
    }
    return attach(tree, path);
  }

  /// `tree`: of open_tree(), closed here.
  Result<void> attach(long tree, const std::string& path) {
    if (tree < 0) return base::failure("copy the mount at " + path, static_cast<int>(-tree));
    const base::UniqueFd owned(static_cast<int>(tree));
    const std::string target = setup_.root_dir + path;
    if (const long moved = move_mount(owned.borrow(), AT_FDCWD, target.c_str()); moved < 0) {
      return base::failure("attach a mount at " + path, static_cast<int>(-moved));
    }
    attached_.push_back(target);
    return {};
  }

  Result<void> keep(const std::string& path) const {
    const std::string real = resolved(path);
    if (real.empty() || !is_below_an_overlay(real)) return {};
    return bind_tree(real, setup_.root_dir + real);
  }

  /// A folder of an upper layer hides owner and mode of the one below it.
  Result<void> make_layer(const std::string& folder, const std::string& original) const {
    struct stat info {};
    if (::stat(original.c_str(), &info) != 0) return base::os_error("stat " + original);
    if (::mkdir(folder.c_str(), 0700) != 0) {
      if (errno == EEXIST) return {};
      return base::os_error("mkdir " + folder);
    }
    const uid_t uid = ids_.on_machine(info.st_uid);
    const gid_t gid = ids_.on_machine(info.st_gid);
    const bool is_like = ::chown(folder.c_str(), uid, gid) == 0 &&
                         ::chmod(folder.c_str(), info.st_mode & 07777) == 0;
    if (!is_like) return base::os_error("give " + folder + " the owner and mode of " + original);
    return {};
  }

  /// The system folders that lie in one mount. One that is a mount itself is left out.
  struct Group {
    std::string point;
    std::vector<std::string> folders;
  };
  std::vector<Group> by_mount() const {
    std::vector<Group> groups;
    for (const auto each : kSystemFolders) {
      const std::string folder(each);
      if (!is_real_folder(folder) || is_mount(folder)) continue;
      std::string point = "/";
      for (const auto& mount : mounts_) {
        const bool is_deeper = mount.point.size() > point.size();
        if (is_deeper && is_within(folder, mount.point)) point = mount.point;
      }
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&point](const Group& each) { return each.point == point; });
      if (group == groups.end()) group = groups.insert(group, {point, {}});
      group->folders.push_back(folder);
    }
    return groups;
  }

  /// Folders of the upper layer that routerd watches have to be there from the beginning.
  Result<void> make_watched(const std::vector<std::string>& folders) const {
    for (const auto view : setup_.watched.views()) {
      const auto is_around = [view](const std::string& folder) { return is_within(view, folder); };
      if (std::none_of(folders.begin(), folders.end(), is_around)) continue;
      const std::string watched(view);
      for (std::size_t end = 0; end != std::string::npos;) {
        end = watched.find('/', end + 1);
        const std::string original = watched.substr(0, end);
        const auto place = upper_path(setup_.upper_dir, watched);
        auto made = make_layer(place->layer + original, original);
        if (!made) return made;
      }
    }
    return {};
  }

  /// An overlay cannot be idmapped, but what it lies on can (Linux 5.19): then that is at `aside`.
  Result<std::string> lower_layer(const std::string& point, const std::string& aside) const {
    if (!ids_) return point;
    auto tree = ids_.mapped(point);
    if (!tree) return tl::unexpected<base::Error>(tree.error());
    if (const long moved = move_mount(tree->borrow(), AT_FDCWD, aside.c_str()); moved < 0) {
      return base::failure("attach the lower layer of " + point, static_cast<int>(-moved));
    }
    return aside;
  }

  Result<void> mount_one(const std::string& point, const std::vector<std::string>& folders) {
    const std::string layers = setup_.upper_dir + "/" + layers_of(point);
    const std::string aside = layers + "/merged";
    for (const auto& folder : {layers, layers + "/upper", layers + "/work", aside}) {
      if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
        return base::os_error("mkdir " + folder);
    }
    auto done = point == "/" ? make_watched(folders) : Result<void>();
    if (done) done = mount_aside(point, layers, aside);
    for (const auto& folder : folders) {
      const std::string path = aside + (point == "/" ? folder : folder.substr(point.size()));
      if (done) done = attach(open_tree(AT_FDCWD, path.c_str(), kCloneTree), folder);
      if (done) made_.push_back(folder);
    }
    while (::umount2(aside.c_str(), MNT_DETACH) == 0) {
    }
    return done;
  }

  Result<void> mount_aside(const std::string& point, const std::string& layers,
                           const std::string& aside) const {
    const auto lower = lower_layer(point, aside);
    if (!lower) return tl::unexpected<base::Error>(lower.error());
    const std::string options =
        "lowerdir=" + *lower + ",upperdir=" + layers + "/upper,workdir=" + layers + "/work";
    const auto attempt = [&](const char* more) {
      return ::mount("overlay", aside.c_str(), "overlay", 0, (options + more).c_str()) == 0;
    };
    // What a crash would lose is gone with the context anyway: no time for sync(2).
    if (attempt(",redirect_dir=on,volatile") || attempt(",redirect_dir=on") || attempt(""))
      return {};
    return base::os_error("mount an overlay over " + point, "'rootfs: shared' does without");
  }

  void undo() {
    for (auto at = attached_.rbegin(); at != attached_.rend(); ++at) {
      ::umount2(at->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    attached_.clear();
    made_.clear();
  }

  const wire::Setup& setup_;
  const IdMap& ids_;
  /// Of this process's root, as they were before anything was overlaid.
  std::vector<MountEntry> mounts_;
  /// Folders that have an overlay.
  std::vector<std::string> made_;
  /// Where there are mounts of ours, in their order.
  std::vector<std::string> attached_;
};

Result<void> mount_memory(const wire::Setup& setup) {
  std::string options = "mode=0700";
  if (setup.tmpfs_bytes != 0) options += ",size=" + std::to_string(setup.tmpfs_bytes);
  if (::mount("tmpfs", setup.upper_dir.c_str(), "tmpfs", MS_NODEV, options.c_str()) != 0) {
    return base::os_error("mount a tmpfs for what the context changes");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> mount_overlays(const wire::Setup& setup, const IdMap& ids,
                                                wire::Ready& ready) {
  auto mounts = own_mounts();
  if (!mounts) return tl::unexpected<base::Error>(mounts.error());
  Overlays overlays(setup, ids, std::move(*mounts));
  auto done = overlays.mount_all();
  if (!done && !setup.upper_in_memory) {
    ready.shares_root = true;
    ready.lacks.add("its root file system is shared: " + done.error().message());
    return std::vector<std::string>();
  }
  if (!done) {
    done = mount_memory(setup);
    if (done) done = overlays.mount_all();
    if (done) {
      ready.lacks.add("what it changes in the system's folders is kept in memory: " +
                      setup.upper_dir + " lies on a file system that cannot be an upper layer");
    }
  }
  if (const auto shared = overlays.shared_mounts(); !shared.empty()) {
    ready.lacks.add("mounts of their own, shared with the platform: " + shared);
  }
  if (done) done = overlays.keep_the_real_ones();
  if (!done) return tl::unexpected<base::Error>(done.error());
  return overlays.take();
}

}  // namespace contexts::init
