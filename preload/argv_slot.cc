// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/argv_slot.h"

#include <atomic>

#include "preload/raw.h"

namespace preload {
namespace {

/// One per thread that execs at the same time; what comes on top gets memory of its own, which a
/// vfork child cannot give back.
constexpr int kSlots = 64;

constexpr size_t kPageBytes = 65536;  // the largest page of the two architectures

size_t round_up(size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

void* map(size_t bytes) {
  const long address = raw::map_memory(bytes);
  return address < 0 && address > -4096 ? nullptr : reinterpret_cast<void*>(address);
}

}  // namespace

struct ArgvSlot::Shared {
  /// 0 is free. The kernel stores a plain 32-bit 0 here (kernel/fork.c, mm_release).
  std::atomic<int> busy;
  void* memory;
  size_t bytes;
};

ArgvSlot::Shared ArgvSlot::shared_[kSlots];

void* ArgvSlot::take(size_t bytes) {
  static_assert(sizeof(Shared::busy) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  bytes = round_up(bytes);
  for (int i = 0; i < kSlots && slot_ == nullptr; ++i) {
    int free_word = 0;
    if (shared_[i].busy.compare_exchange_strong(free_word, 1)) slot_ = &shared_[i];
  }
  if (slot_ == nullptr) {
    own_memory_ = map(bytes);
    own_bytes_ = bytes;
    return own_memory_;
  }
  if (slot_->bytes < bytes) {
    if (slot_->memory != nullptr) raw::unmap_memory(slot_->memory, slot_->bytes);
    slot_->memory = map(bytes);
    slot_->bytes = slot_->memory != nullptr ? bytes : 0;
  }
  return slot_->memory;
}

void ArgvSlot::leave_to_kernel() {
  if (slot_ == nullptr || raw::tid_address(&tid_address_) < 0) return;
  raw::set_tid_address(reinterpret_cast<int*>(&slot_->busy));
  left_to_kernel_ = true;
}

ArgvSlot::~ArgvSlot() {
  // First the address: it is where pthread_join waits for this thread.
  if (left_to_kernel_) raw::set_tid_address(tid_address_);
  if (slot_ != nullptr) slot_->busy.store(0);
  if (own_memory_ != nullptr) raw::unmap_memory(own_memory_, own_bytes_);
}

}  // namespace preload
