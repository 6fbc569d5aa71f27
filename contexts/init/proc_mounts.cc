#include "contexts/init/proc_mounts.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace contexts::init {
namespace {

using base::Result;
using std::string_view;

struct ProcMount {
  /// "0:93"
  std::string device;
  std::string point;
};

/// Octal escapes undone.
std::string unescaped(string_view text) {
  std::string point;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      point.push_back(text[i]);
      continue;
    }
    point.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
    i += 3;
  }
  return point;
}

/// Every procfs in a mountinfo text.
std::vector<ProcMount> proc_mounts(string_view mountinfo) {
  std::vector<ProcMount> found;
  while (!mountinfo.empty()) {
    const auto end = std::min(mountinfo.find('\n'), mountinfo.size());
    string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    if (line.find(" - proc ") == string_view::npos) continue;
    string_view fields[5];
    for (auto& field : fields) {
      const auto space = std::min(line.find(' '), line.size());
      field = line.substr(0, space);
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    found.push_back({std::string(fields[2]), unescaped(fields[4])});
  }
  return found;
}

Result<void> expect_only_own_proc() {
  struct stat own {};
  if (::stat("/proc", &own) != 0) return base::os_error("stat /proc");
  const std::string device =
      std::to_string(major(own.st_dev)) + ":" + std::to_string(minor(own.st_dev));
  const auto mountinfo = base::read_file("/proc/self/mountinfo");
  if (!mountinfo) return tl::unexpected<base::Error>(mountinfo.error());
  for (const auto& mount : proc_mounts(*mountinfo)) {
    if (mount.device == device) continue;
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
Result<void> replace_proc(const std::string& mountinfo) {
  for (const auto& mount : proc_mounts(mountinfo)) {
    while (::umount2(mount.point.c_str(), MNT_DETACH) == 0) {
    }
  }
  auto mounted = mount_own_proc("/proc");
  return mounted ? expect_only_own_proc() : mounted;
}

}  // namespace contexts::init
