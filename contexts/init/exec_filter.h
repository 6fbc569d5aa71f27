#pragma once

namespace contexts::init {

/// From now on every exec of this process and its descendants stops in its tracer before it happens
/// (SECCOMP_RET_TRACE, seccomp(2)); without a tracer it fails with ENOSYS. The machine's other
/// system call ABIs (i386, x32, 32-bit arm) cannot exec at all: EPERM. Where the caller lacks
/// CAP_SYS_ADMIN this sets no_new_privs. Returns 0 or -errno; async-signal-safe.
long trace_execs();

}  // namespace contexts::init
