#include "contexts/clone_init.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/raw_syscall.h"

namespace contexts {

using base::raw::call;

namespace {

constexpr int kChannelNumber = 3;

unsigned long clone_flags(Tier tier) {
  switch (tier) {
    case Tier::namespaces:
      return CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    case Tier::userns:
      return CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    default:
      return 0;
  }
}

struct IdMap {
  char uid[48];
  char gid[48];
  int uid_length;
  int gid_length;
};

// ---- From here to the exec: in the child, a copy of the daemon. Raw system calls only.

long write_proc_file(const char* path, const char* text, int length) {
  const long fd = call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fd;
  const long written = call(SYS_write, fd, text, length);
  call(SYS_close, fd);
  return written;
}

// The one id an unprivileged user may map is its own (user_namespaces(7)); it stays the same
// number inside, so files look owned as before. The files belong to root while this copy of the
// daemon is non-dumpable (proc(5)), so for these three writes it is dumpable.
long map_ids(const IdMap& map) {
  call(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  long result = write_proc_file("/proc/self/setgroups", "deny", 4);
  if (result >= 0) result = write_proc_file("/proc/self/uid_map", map.uid, map.uid_length);
  if (result >= 0) result = write_proc_file("/proc/self/gid_map", map.gid, map.gid_length);
  call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  return result;
}

// A user other than root would lose the new namespace's capabilities by the exec of the init;
// ambient ones survive it (capabilities(7)). The init clears them.
void keep_capabilities_over_exec() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (call(SYS_capget, &header, sets) != 0) return;
  for (auto& set : sets) set.inheritable = set.permitted;
  if (call(SYS_capset, &header, sets) != 0) return;
  for (unsigned capability = 0; capability < 64; ++capability) {
    call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
  }
}

[[noreturn]] void become_init(Tier tier, const IdMap& map, int program, int channel) {
  if (tier == Tier::userns) {
    if (map_ids(map) < 0) call(SYS_exit_group, 1);
    keep_capabilities_over_exec();
  }
  // `program` may be number 3: dup3 would replace it.
  const long kept = call(SYS_fcntl, program, F_DUPFD_CLOEXEC, kChannelNumber + 1);
  if (channel == kChannelNumber) {
    call(SYS_fcntl, channel, F_SETFD, 0);
  } else {
    call(SYS_dup3, channel, kChannelNumber, 0);
  }
  char name[] = "airlock-init";
  char* argv[] = {name, nullptr};
  char* env[] = {nullptr};
  call(SYS_execveat, kept, "", argv, env, AT_EMPTY_PATH);
  call(SYS_exit_group, 1);
  __builtin_unreachable();
}

}  // namespace

base::Result<InitProcess> clone_init(Tier tier, int program, int channel) {
  IdMap map{};
  map.uid_length = std::snprintf(map.uid, sizeof map.uid, "%u %u 1", ::geteuid(), ::geteuid());
  map.gid_length = std::snprintf(map.gid, sizeof map.gid, "%u %u 1", ::getegid(), ::getegid());
  int pidfd = -1;
  // fork(2)-like clone: without a stack the child goes on here, on a copy of this one.
  const long pid =
      call(SYS_clone, clone_flags(tier) | CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
  if (pid == 0) become_init(tier, map, program, channel);
  if (pid < 0) {
    return base::failure(tier == Tier::userns ? "create user, PID, mount and IPC namespaces"
                                              : "create PID, mount and IPC namespaces",
                         static_cast<int>(-pid),
                         tier == Tier::userns ? "unprivileged user namespaces are needed"
                                              : "CAP_SYS_ADMIN is needed");
  }
  return InitProcess{static_cast<pid_t>(pid), base::UniqueFd(pidfd)};
}

}  // namespace contexts
