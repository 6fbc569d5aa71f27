#include "contexts/init/id_map.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "contexts/init/mount_calls.h"

namespace contexts::init {
namespace {

using base::Result;
using base::UniqueFd;

constexpr std::uint32_t kIds = 65536;
constexpr std::uint32_t kNobody = 65534;

/// Kernel interfaces: their files are no user's, and they cannot be idmapped.
bool has_no_owners(const std::string& type) {
  constexpr const char* kTypes[] = {
      "proc",       "sysfs",   "cgroup", "cgroup2",  "devtmpfs",    "devpts",   "mqueue",
      "securityfs", "debugfs", "bpf",    "tracefs",  "binfmt_misc", "configfs", "fusectl",
      "hugetlbfs",  "pstore",  "nsfs",   "efivarfs", "selinuxfs",   "autofs"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

Result<UniqueFd> copy_of(const std::string& path) {
  // Mount points can be symlinks (overlay.cc pins them).
  const long tree = open_tree(AT_FDCWD, path.c_str(), kCloneTree | AT_SYMLINK_NOFOLLOW);
  if (tree >= 0) return UniqueFd(static_cast<int>(tree));
  return base::failure("copy the mount at " + path, static_cast<int>(-tree));
}

Result<void> map(const UniqueFd& tree, const UniqueFd& user_namespace, const std::string& point) {
  constexpr std::uint64_t kIdMap = 0x00100000;  // MOUNT_ATTR_IDMAP of linux/mount.h; musl has none
  struct {
    std::uint64_t set, clear, propagation, user_namespace;
  } const attributes{kIdMap, 0, 0, static_cast<std::uint64_t>(user_namespace.borrow())};
  constexpr int kEmptyPath = 0x1000;  // AT_EMPTY_PATH
  if (::syscall(SYS_mount_setattr, tree.borrow(), "", kEmptyPath, &attributes, sizeof attributes) ==
      0) {
    return {};
  }
  return base::os_error("shift the owners of " + point);
}

Result<void> attach(const UniqueFd& tree, int folder, const std::string& point) {
  const long done = move_mount(tree.borrow(), folder, point.c_str());
  if (done == 0) return {};
  return base::failure("attach the idmapped /" + point, static_cast<int>(-done));
}

bool is_covered(const std::vector<MountEntry>& mounts, std::size_t at) {
  return std::any_of(mounts.begin() + static_cast<std::ptrdiff_t>(at) + 1, mounts.end(),
                     [&](const MountEntry& later) { return later.point == mounts[at].point; });
}

bool contains(const std::vector<std::string>& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// Tells its number in the procfs of /proc, which is not that of its PID namespace yet, and waits.
[[noreturn]] void hold_namespace(int told) {
  char number[16] = {};
  (void)::readlink("/proc/self", number, sizeof number - 1);
  (void)base::write_all(told, number);
  for (;;) ::pause();
}

Result<UniqueFd> open_mapped(const std::string& holder, std::uint32_t first) {
  const std::string map = "0 " + std::to_string(first) + " " + std::to_string(kIds);
  for (const char* file : {"/uid_map", "/gid_map"}) {
    auto written = base::write_file("/proc/" + holder + file, map, 0);
    if (!written) return tl::unexpected<base::Error>(written.error());
  }
  return base::open_file("/proc/" + holder + "/ns/user", O_RDONLY | O_CLOEXEC);
}

/// A user namespace that stays as long as somebody has it open.
Result<UniqueFd> make_user_namespace(std::uint32_t first) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("pipe");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t holder = static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (holder < 0) return base::os_error("make a user namespace");
  if (holder == 0) hold_namespace(writing.borrow());
  writing.reset();
  char number[16] = {};
  const ssize_t told = ::read(reading.borrow(), number, sizeof number - 1);
  auto made = told > 0 ? open_mapped(number, first) : base::failure("find a process in /proc", EIO);
  ::kill(holder, SIGKILL);
  while (::waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {
  }
  return made;
}

}  // namespace

Result<IdMap> IdMap::make(std::uint32_t first, const std::vector<MountEntry>& mounts) {
  auto user_namespace = make_user_namespace(first);
  if (!user_namespace) return tl::unexpected<base::Error>(user_namespace.error());
  IdMap made;
  made.first_ = first;
  made.user_namespace_ = std::move(*user_namespace);
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (has_no_owners(mounts[i].type) || is_covered(mounts, i)) continue;
    if (auto tried = made.mapped(mounts[i].point); !tried && tried.error().code != ENOENT) {
      tried.error().detail = "a file system of type " + mounts[i].type;
      return tl::unexpected<base::Error>(tried.error());
    }
  }
  return made;
}

std::uint32_t IdMap::on_machine(std::uint32_t id) const {
  if (!user_namespace_) return id;
  return first_ + (id < kIds ? id : kNobody);
}

Result<UniqueFd> IdMap::mapped(const std::string& path) const {
  auto copy = copy_of(path);
  if (!copy) return copy;
  auto done = map(*copy, user_namespace_, path);
  if (!done) return tl::unexpected<base::Error>(done.error());
  return copy;
}

// Mounts can be idmapped only before they are attached, and one by one: those in a tree that is not
// attached cannot be changed. What another mount covers is not copied.
Result<void> IdMap::map_mounts(const std::vector<std::string>& mapped_already) const {
  const auto mounts = own_mounts();
  if (!mounts) return tl::unexpected<base::Error>(mounts.error());
  auto root = mapped("/");
  if (!root) return tl::unexpected<base::Error>(root.error());
  // Paths from this process's root still lead below it.
  if (auto done = attach(*root, AT_FDCWD, "/"); !done) return done;
  for (std::size_t i = 0; i < mounts->size(); ++i) {
    const auto& [id, parent, device, point, type] = (*mounts)[i];
    if (point == "/" || is_covered(*mounts, i)) continue;
    const bool stays = has_no_owners(type) || contains(mapped_already, point);
    auto copy = stays ? copy_of(point) : mapped(point);
    if (!copy && copy.error().code == ENOENT) continue;  // below another mount
    if (!copy) return tl::unexpected<base::Error>(copy.error());
    if (auto done = attach(*copy, root->borrow(), point.substr(1)); !done) return done;
  }
  if (::fchdir(root->borrow()) != 0) return base::os_error("enter the idmapped root");
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return base::os_error("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return base::os_error("detach the old root");
  if (::chdir("/") != 0) return base::os_error("chdir /");
  return {};
}

Result<void> IdMap::enter() const {
  if (::setns(user_namespace_.borrow(), CLONE_NEWUSER) != 0) {
    return base::os_error("enter the context's user namespace");
  }
  if (::setgroups(0, nullptr) != 0 || ::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) {
    return base::os_error("become root of the context's user namespace");
  }
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return base::os_error("PR_SET_DUMPABLE");
  return {};
}

}  // namespace contexts::init
