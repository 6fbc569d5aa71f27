#include "contexts/init/farm.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "contexts/init/mount_calls.h"

namespace contexts::init {

using base::Result;

namespace {

constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV;
// A hard link takes an inode of a tmpfs's number (shmem_link, mm/shmem.c).
constexpr const char* kOptions = "size=4m,nr_inodes=65536,mode=0755";

}  // namespace

Result<base::UniqueFd> mount_farm(const wire::Setup& setup) {
  const std::string place = setup.view_dir + "/farm";
  if (::mkdir(place.c_str(), 0755) != 0 && errno != EEXIST) return base::os_error("mkdir " + place);
  if (::mount("tmpfs", place.c_str(), "tmpfs", kFlags, kOptions) != 0) {
    return base::os_error("mount a tmpfs on " + place);
  }
  return base::open_file(place, O_RDONLY | O_DIRECTORY);
}

// A mount of its own, so that it can be read-only while routerd's descriptor goes on writing.
Result<void> show_farm(const wire::Setup& setup, int root) {
  const std::string place = setup.runtime_dir + "/farm";
  const long tree = open_tree(root, "", AT_EMPTY_PATH | kCloneTree);
  if (tree < 0) return base::failure("copy the mount of the farm", static_cast<int>(-tree));
  const base::UniqueFd copy(static_cast<int>(tree));
  if (const long moved = move_mount(copy.borrow(), AT_FDCWD, place.c_str()); moved < 0) {
    return base::failure("mount on " + place, static_cast<int>(-moved));
  }
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY | kFlags;
  if (::mount("none", place.c_str(), nullptr, kReadOnly, nullptr) != 0) {
    return base::os_error("make " + place + " read-only");
  }
  return {};
}

namespace {

constexpr const char* kMemfdKnob = "/proc/sys/vm/memfd_noexec";

Result<void> set_memfd_knob() {
  auto knob = base::open_file(kMemfdKnob, O_WRONLY);
  if (!knob) return tl::unexpected<base::Error>(knob.error());
  return base::write_all(knob->borrow(), "2");
}

/// Tried by a process of a namespace of its own: the setting can never be lowered again.
Result<void> try_memfd_knob() {
  const long pid = ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return base::os_error("try vm.memfd_noexec");
  if (pid == 0) {
    if (auto set = set_memfd_knob(); !set) _exit(set.error().code);
    _exit(::syscall(SYS_memfd_create, "try", 1u /* MFD_CLOEXEC */) < 0 ? ENOTSUP : 0);
  }
  int status = 0;
  if (::waitpid(static_cast<pid_t>(pid), &status, 0) != pid) return base::os_error("waitpid");
  if (status == 0) return {};
  return base::failure("vm.memfd_noexec", WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
}

}  // namespace

Result<void> forbid_executable_memfds() {
  auto tried = try_memfd_knob();
  return tried ? set_memfd_knob() : tried;
}

}  // namespace contexts::init
