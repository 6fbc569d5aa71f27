// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
//
// The argv of the stub: {"airlock-stub", "exec1", TARGET, argv...}. Only pointers are copied.
#pragma once

#include "preload/argv_slot.h"
#include "preload/scratch.h"
#include "preload/target.h"

namespace preload {

class ArgvBlock {
 public:
  /// 0, EFAULT (`argv` leads out of readable memory) or ENOMEM. `argv` may be nullptr: empty. The
  /// pointers go behind the target's path in `scratch`, or into a slot if they do not fit there.
  int build(const Target& target, char* const argv[], Scratch& scratch);

  /// As ArgvSlot::leave_to_kernel: call right before the exec.
  void leave_to_kernel() { slot_.leave_to_kernel(); }

  char* const* words() const { return words_; }

 private:
  ArgvSlot slot_;
  char** words_ = nullptr;
};

}  // namespace preload
