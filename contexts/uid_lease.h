#pragma once

#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace contexts {

/// A user id for one context of tier `uids`, nobody else's as long as this object lives: not of an
/// account, not of a running process, not of another daemon on this machine.
class UidLease {
 public:
  UidLease() = default;
  /// The same name gets the same id wherever that is free, so that files keep their owner when a
  /// daemon starts anew. Reads all of /proc: some ms. EPERM: this process is not root; EAGAIN: none
  /// of the ids from kFirstOwnUid to kLastOwnUid is free.
  static base::Result<UidLease> take(std::string_view context);

  explicit operator bool() const { return static_cast<bool>(lock_); }
  uid_t uid() const { return uid_; }
  /// The first of 65536 ids that belong to this lease alone, for a user namespace: between those
  /// that other managers of containers use and 2^31.
  std::uint32_t first_of_block() const;

 private:
  UidLease(base::UniqueFd lock, uid_t uid) : lock_(std::move(lock)), uid_(uid) {}

  /// Open file description that holds the lock on byte `uid_` of the lock file (fcntl(2)).
  base::UniqueFd lock_;
  uid_t uid_ = 0;
};

/// How many processes have the real user id `uid`; zombies do not count.
int count_processes_of(uid_t uid);

}  // namespace contexts
