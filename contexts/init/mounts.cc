#include "contexts/init/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "contexts/init/farm.h"
#include "contexts/init/proc_mounts.h"
#include "contexts/init/rootfs.h"
#include "contexts/tier.h"

namespace contexts::init {
namespace {

using base::Result;

constexpr std::size_t kMaxSharedFile = 4 << 20;

Result<void> mount_at(const char* source, const std::string& target, const char* type,
                      unsigned long flags, const char* options = nullptr) {
  if (::mount(source, target.c_str(), type, flags, options) != 0) {
    return base::os_error(std::string("mount ") + (type != nullptr ? type : source) + " on " +
                          target);
  }
  return {};
}

/// Changes the flags of the bind mount at `target`. In a user namespace those it was born with are
/// locked (mount_namespaces(7)) and must be repeated.
Result<void> set_flags(const std::string& target, unsigned long wanted) {
  struct statvfs info {};
  if (::statvfs(target.c_str(), &info) != 0) return base::os_error("statvfs " + target);
  unsigned long flags = MS_REMOUNT | MS_BIND | wanted;
  if ((info.f_flag & ST_NOSUID) != 0) flags |= MS_NOSUID;
  if ((info.f_flag & ST_NODEV) != 0) flags |= MS_NODEV;
  if ((info.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((info.f_flag & ST_NOATIME) != 0) flags |= MS_NOATIME;
  if ((info.f_flag & ST_RELATIME) != 0) flags |= MS_RELATIME;
  return mount_at("none", target, nullptr, flags);
}

/// A folder of programs may lie on a /run that is mounted noexec; where that flag is not locked the
/// bind mount loses it.
Result<void> allow_exec(const wire::Setup& setup, const std::string& target, unsigned long flags) {
  if (static_cast<Tier>(setup.tier) != Tier::namespaces) return set_flags(target, flags);
  return mount_at("none", target, nullptr, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | flags);
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

/// Owner and mode as `original` has them; in a user namespace there is only one owner.
void own_like(const std::string& original, const std::string& copy) {
  struct stat info {};
  if (::stat(original.c_str(), &info) != 0) return;
  (void)::lchown(copy.c_str(), info.st_uid, info.st_gid);
  (void)::chmod(copy.c_str(), info.st_mode & 07777);
}

/// Creates the folders of `relative` below `root` as they are below `model`.
Result<void> make_folders(const std::string& model, const std::string& root,
                          const std::string& relative) {
  for (std::size_t at = 0; at != std::string::npos;) {
    at = relative.find('/', at + 1);
    const std::string folder = root + "/" + relative.substr(0, at);
    if (::mkdir(folder.c_str(), 0755) == 0) {
      own_like(model + "/" + relative.substr(0, at), folder);
    } else if (errno != EEXIST) {
      return base::os_error("mkdir " + folder);
    }
  }
  return {};
}

/// Puts one path of the platform's HOME at the same place of the private one: a folder by a bind
/// mount, a file as a copy (programs replace such files by rename, which a mount would refuse).
Result<void> share_one(const wire::Setup& setup, const std::string& path) {
  const std::string relative = path.substr(setup.home.size() + 1);
  const std::string target = setup.private_home + "/" + relative;
  if (is_directory(path)) {
    auto made = make_folders(setup.home, setup.private_home, relative);
    return made ? mount_at(path.c_str(), target, nullptr, MS_BIND | MS_REC) : made;
  }
  if (const auto slash = relative.rfind('/'); slash != std::string::npos) {
    auto made = make_folders(setup.home, setup.private_home, relative.substr(0, slash));
    if (!made) return made;
  }
  auto content = base::read_file(path, kMaxSharedFile);
  if (!content) return tl::unexpected<base::Error>(content.error());
  auto written = base::write_file(target, *content, 0600);
  if (written) own_like(path, target);
  return written;
}

/// HOME becomes a folder of the context's own; what both need is bound into it first.
Result<void> replace_home(const wire::Setup& setup) {
  if (setup.private_home.empty()) return {};
  for (const auto& path : setup.share.strings()) {
    if (!exists(path) || !path.starts_with(setup.home + "/")) continue;
    if (auto shared = share_one(setup, path); !shared) return shared;
  }
  auto bound = mount_at(setup.private_home.c_str(), setup.home, nullptr, MS_BIND | MS_REC);
  return bound ? allow_exec(setup, setup.home, 0) : bound;
}

// Whole folders only: a mask over a single file vanishes when somebody renames over it.
Result<void> hide_folders(const wire::Setup& setup) {
  for (const auto& path : setup.hide.strings()) {
    if (!exists(path)) continue;
    if (!is_directory(path)) {
      return base::failure("hide " + path, ENOTDIR, "only folders can be hidden");
    }
    constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_RDONLY;
    if (auto hidden = mount_at("tmpfs", path, "tmpfs", kFlags, "size=4k,mode=0555"); !hidden) {
      return hidden;
    }
  }
  return {};
}

/// Whoever renames the folder above such a mount point makes room for others at its path, but what
/// was there when the context was made stays as it is.
Result<void> protect_paths(const wire::Setup& setup) {
  for (const auto& path : setup.protect.strings()) {
    if (!exists(path)) continue;
    auto bound = mount_at(path.c_str(), path, nullptr, MS_BIND | MS_REC);
    if (!bound) return bound;
    if (auto made = set_flags(path, MS_RDONLY); !made) return made;
  }
  return {};
}

/// From here on the runtime folder shows what is meant for this context, and nothing of routerd.
Result<void> install_view(const wire::Setup& setup) {
  if (auto bound = mount_at(setup.view_dir.c_str(), setup.runtime_dir, nullptr, MS_BIND); !bound) {
    return bound;
  }
  return allow_exec(setup, setup.runtime_dir, MS_RDONLY | MS_NOSUID | MS_NODEV);
}

Result<void> add_to_root(const std::string& new_root, const std::string& name) {
  const std::string source = "/" + name;
  const std::string target = new_root + "/" + name;
  struct stat info {};
  if (::lstat(source.c_str(), &info) != 0) return {};
  if (S_ISLNK(info.st_mode)) {
    auto link = base::read_link(source);
    if (!link) return tl::unexpected<base::Error>(link.error());
    if (::symlink(link->c_str(), target.c_str()) != 0) return base::os_error("symlink " + target);
    return {};
  }
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(target.c_str(), 0755) != 0) return base::os_error("mkdir " + target);
    return name == "proc" ? mount_own_proc(target)
                          : mount_at(source.c_str(), target, nullptr, MS_BIND | MS_REC);
  }
  if (!S_ISREG(info.st_mode)) return {};
  if (auto made = base::write_file(target, "", 0600); !made) return made;
  return mount_at(source.c_str(), target, nullptr, MS_BIND);
}

// Mounts that an unprivileged user namespace was born with are locked to their parents, /proc to /,
// and cannot be detached (mount_namespaces(7)). So the new root there is a folder of its own with
// everything but /proc bound into it. The new /proc is mounted while the old one can still be seen,
// as the kernel demands there (mount_too_revealing, fs/namespace.c).
Result<void> assemble_root(const std::string& new_root) {
  if (auto made = mount_at("tmpfs", new_root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"); !made) {
    return made;
  }
  // So that no folder above it brings it along into itself.
  if (auto made = mount_at("none", new_root, nullptr, MS_UNBINDABLE); !made) return made;
  DIR* root = ::opendir("/");
  if (root == nullptr) return base::os_error("list /");
  Result<void> added;
  while (const dirent* entry = ::readdir(root)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    added = add_to_root(new_root, name);
    if (!added) break;
  }
  ::closedir(root);
  return added;
}

/// Makes it the root: the one at setup.root_dir.
Result<void> pivot(const wire::Setup& setup) {
  const std::string& new_root = setup.root_dir;
  // Was unbindable while it was made: see there.
  if (auto made = mount_at("none", new_root, nullptr, MS_PRIVATE); !made) return made;
  if (::chdir(new_root.c_str()) != 0) return base::os_error("chdir " + new_root);
  // pivot_root(2), "pivot_root(".", ".")": no put_old folder is needed.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return base::os_error("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return base::os_error("detach the old root");
  if (::chdir("/") != 0) return base::os_error("chdir /");
  return {};
}

Result<void> own_ipc_mounts(const wire::Setup& setup, wire::StringList& lacks) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV;
  if (is_directory("/dev/shm")) {
    std::string options = "mode=1777";
    if (setup.tmpfs_bytes != 0) options += ",size=" + std::to_string(setup.tmpfs_bytes);
    auto mounted = mount_at("tmpfs", "/dev/shm", "tmpfs", kFlags, options.c_str());
    if (!mounted) return mounted;
  }
  if (is_directory("/dev/mqueue")) {
    auto mounted = mount_at("mqueue", "/dev/mqueue", "mqueue", kFlags | MS_NOEXEC);
    if (!mounted) lacks.add("/dev/mqueue is shared: " + mounted.error().message());
  }
  if (setup.own_devpts && is_directory("/dev/pts")) {
    return mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=620");
  }
  return {};
}

/// Read-only with all that is mounted below: whoever may write in a cgroup's files can freeze or
/// kill the platform's, and tools want to read their limits there.
Result<void> protect_sysfs() {
  constexpr std::uint64_t kReadOnly = 1;  // MOUNT_ATTR_RDONLY of linux/mount.h; musl has none
  struct {
    std::uint64_t set, clear, propagation, user_namespace;
  } const read_only{kReadOnly, 0, 0, 0};
  const long done =
      ::syscall(SYS_mount_setattr, AT_FDCWD, "/sys", AT_RECURSIVE, &read_only, sizeof read_only);
  if (done == 0 || !is_directory("/sys")) return {};
  if (errno != ENOSYS && errno != EINVAL) return base::os_error("make /sys read-only");
  if (!is_directory("/sys/fs/cgroup")) return {};  // before Linux 5.12
  return mount_at("tmpfs", "/sys/fs/cgroup", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k");
}

/// The kernel gives no larger pid in this namespace, so a fork fails (EAGAIN) when all are taken.
Result<void> limit_pids(const wire::Setup& setup) {
  constexpr const char* kPidMax = "/proc/sys/kernel/pid_max";
  constexpr const char* kNeeds = "it needs a writable cgroup, or Linux 6.14";
  if (setup.pid_max == 0) return {};
  // Before that the number is the whole machine's, so it must not even be tried.
  utsname kernel{};
  int major = 0, minor = 0;
  if (::uname(&kernel) != 0 || std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2 ||
      major < 6 || (major == 6 && minor < 14)) {
    return base::failure("limit 'pids' cannot be kept here", ENOTSUP, kNeeds);
  }
  const auto present = base::read_file(kPidMax);
  if (present && std::strtoull(present->c_str(), nullptr, 10) <= setup.pid_max) return {};
  auto done = base::write_file(kPidMax, std::to_string(setup.pid_max), 0);
  if (!done) done.error().detail = kNeeds;
  return done;
}

/// What tells of the whole machine or of everybody's keys. Nobody could have put a link in the
/// place of /dev/null yet, but the root may come from an image (CVE-2025-31133).
Result<void> hide_kernel_files() {
  struct stat null {};
  constexpr dev_t kNull = 0x103;  // makedev(1, 3)
  if (::lstat("/dev/null", &null) != 0 || !S_ISCHR(null.st_mode) || null.st_rdev != kNull) {
    return base::failure("hide files of /proc", EINVAL, "/dev/null is not the null device");
  }
  for (const char* path : {"/proc/keys", "/proc/key-users", "/proc/kcore", "/proc/timer_list",
                           "/proc/sched_debug", "/proc/latency_stats"}) {
    if (!exists(path)) continue;
    if (auto hidden = mount_at("/dev/null", path, nullptr, MS_BIND); !hidden) return hidden;
  }
  for (const char* path : {"/proc/acpi", "/proc/scsi"}) {
    if (!is_directory(path)) continue;
    constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    if (auto hidden = mount_at("tmpfs", path, "tmpfs", kFlags, "size=4k,mode=0555"); !hidden) {
      return hidden;
    }
  }
  return {};
}

Result<void> protect_knobs(const wire::Setup& setup) {
  if (!setup.protect_kernel_knobs) return {};
  if (auto done = protect_sysfs(); !done) return done;
  for (const char* path : {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}) {
    if (!exists(path)) continue;
    if (auto bound = mount_at(path, path, nullptr, MS_BIND | MS_REC); !bound) return bound;
    if (auto made = set_flags(path, MS_RDONLY); !made) return made;
  }
  return hide_kernel_files();
}

/// An agent's private preload file lies over this one. Being a mount point here, it can be neither
/// removed nor renamed over, which would detach the agent's mount, too (EBUSY, rename(2)).
Result<void> pin_preload_file() {
  constexpr const char* kPath = "/etc/ld.so.preload";
  if (!exists(kPath)) return {};
  auto bound = mount_at(kPath, kPath, nullptr, MS_BIND);
  return bound ? set_flags(kPath, MS_RDONLY) : bound;
}

void note_memfds(wire::Ready& ready) {
  if (auto forbidden = forbid_executable_memfds(); !forbidden) {
    ready.memfd_error = forbidden.error().message();
  }
}

}  // namespace

Result<void> build_mounts(const wire::Setup& setup, const IdMap& ids, wire::Ready& ready,
                          base::UniqueFd& farm) {
  const auto outer = own_mounts();
  if (!outer) return tl::unexpected<base::Error>(outer.error());
  const bool is_unprivileged = static_cast<Tier>(setup.tier) == Tier::userns;
  auto done = mount_at("none", "/", nullptr, MS_REC | MS_PRIVATE);
  std::vector<std::string> overlaid;
  if (done && is_unprivileged) done = assemble_root(setup.root_dir);
  if (done && !is_unprivileged) {
    auto made = make_root(setup, ids, ready);
    if (!made) return tl::unexpected<base::Error>(made.error());
    overlaid = std::move(*made);
  }
  if (done) done = pivot(setup);
  if (done) done = replace_home(setup);
  if (done) done = hide_folders(setup);
  if (done) done = protect_paths(setup);
  if (done && setup.with_farm) {
    auto mounted = mount_farm(setup);
    if (mounted) farm = std::move(*mounted);
    if (!mounted) ready.farm_error = mounted.error().message();
  }
  if (done) done = install_view(setup);
  if (done && farm) done = show_farm(setup, farm.borrow());
  if (done && !is_unprivileged) done = replace_proc(*outer);
  if (done) done = own_ipc_mounts(setup, ready.lacks);
  if (done && farm) note_memfds(ready);
  if (done) done = limit_pids(setup);
  if (done) done = protect_knobs(setup);
  if (done) done = pin_preload_file();
  // The folder made above stands for a root that this user could not write to.
  if (done && is_unprivileged) done = set_flags("/", MS_RDONLY);
  if (done && ids) done = ids.map_mounts(overlaid);
  return done;
}

}  // namespace contexts::init
