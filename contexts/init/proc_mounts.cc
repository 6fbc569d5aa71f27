#include "contexts/init/proc_mounts.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

namespace contexts::init {
namespace {

using base::Result;

Result<void> expect_only_own_proc() {
  struct stat own {};
  if (::stat("/proc", &own) != 0) return base::os_error("stat /proc");
  const std::string device =
      std::to_string(major(own.st_dev)) + ":" + std::to_string(minor(own.st_dev));
  const auto mounts = own_mounts();
  if (!mounts) return tl::unexpected<base::Error>(mounts.error());
  for (const auto& mount : *mounts) {
    if (mount.type != "proc" || mount.device == device) continue;
    return base::failure("detach the parent's procfs on " + mount.point, EEXIST,
                         "it lies below another mount");
  }
  return {};
}

}  // namespace

Result<void> mount_own_proc(const std::string& target) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("proc", target.c_str(), "proc", kFlags, nullptr) != 0) {
    return base::os_error("mount proc on " + target,
                          "an own /proc needs an unmasked /proc in a user namespace");
  }
  struct statfs info {};
  if (::statfs(target.c_str(), &info) != 0 || info.f_type != PROC_SUPER_MAGIC) {
    return base::failure("verify the new /proc", EIO);
  }
  return {};
}

// Detached, not covered: a covered procfs of the parent reappears to whoever may umount(2).
Result<void> replace_proc(const std::vector<MountEntry>& outer) {
  for (const auto& mount : outer) {
    while (mount.type == "proc" && ::umount2(mount.point.c_str(), MNT_DETACH) == 0) {
    }
  }
  auto mounted = mount_own_proc("/proc");
  return mounted ? expect_only_own_proc() : mounted;
}

}  // namespace contexts::init
