// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
//
// Memory for argv arrays that are too long for the stack. A vfork child borrows its parent's
// memory and never comes back from a successful exec, so nobody is left to give the memory back:
// the kernel does it, with the one word it writes when a thread leaves its memory.
#pragma once

#include <cstddef>

namespace preload {

class ArgvSlot {
 public:
  ArgvSlot() = default;
  ArgvSlot(const ArgvSlot&) = delete;
  ArgvSlot& operator=(const ArgvSlot&) = delete;
  /// The exec has failed, or a spawn has returned.
  ~ArgvSlot();

  /// At least `bytes` of memory, or nullptr (ENOMEM). At most one call per object.
  void* take(size_t bytes);

  /// The next exec of this thread frees the slot if it succeeds. Without PR_GET_TID_ADDRESS
  /// (CONFIG_CHECKPOINT_RESTORE) a vfork child's slot stays taken for ever.
  void leave_to_kernel();

 private:
  struct Shared;
  static Shared shared_[];

  Shared* slot_ = nullptr;
  void* own_memory_ = nullptr;  // when all slots are taken
  size_t own_bytes_ = 0;
  bool left_to_kernel_ = false;
  int* tid_address_ = nullptr;
};

}  // namespace preload
