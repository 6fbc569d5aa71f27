#pragma once

#include "base/result.h"

namespace contexts::init {

/// Which system calls a context's programs do without (seccomp(2)). Refused ones fail with EPERM,
/// whole foreign ABIs with ENOSYS; nothing is killed.
enum class SyscallFilter {
  /// What reaches beyond the context, or is much used to break kernels, and little else: keyrings,
  /// bpf, perf, kexec, modules, file handles, userfaultfd, TIOCSTI and TIOCLINUX; the x32 ABI. By
  /// the i386 entry, too.
  secure,
  /// And io_uring, mounts and namespaces, clocks, swap, quotas, and every foreign ABI.
  strict,
};

/// False: this kernel has no seccomp filters (Linux 4.14 is asked).
bool can_filter_syscalls();

/// Enters the filter, for this process and all it starts. Needs CAP_SYS_ADMIN in the own user
/// namespace or no_new_privs. ENOSYS, EINVAL: a kernel without seccomp filters.
base::Result<void> enter(SyscallFilter filter);

}  // namespace contexts::init
