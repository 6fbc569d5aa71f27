// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
//
// The one large stack buffer of a call. Programs exec from threads with 16 KiB of stack, so the
// resolved path and the stub's argv share it: the path lies at its start, the pointers behind it.
#pragma once

#include <linux/limits.h>

namespace preload {

/// Room for a path of PATH_MAX and 64 pointers, or a usual path and more than 500 pointers.
inline constexpr unsigned kScratchBytes = PATH_MAX + 512;

struct Scratch {
  alignas(alignof(char*)) char bytes[kScratchBytes];
};

}  // namespace preload
