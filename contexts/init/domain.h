#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace contexts::init {

/// Version of Landlock's interface in this kernel (landlock(7)); 0 = none, or refused by seccomp.
int landlock_abi();

/// The version that can scope signals and abstract sockets: Linux 6.12.
constexpr int kScopedAbi = 6;

/// A Landlock domain to be entered. What is started inside stays inside; nothing inside may trace
/// what is outside, nor read its environment, memory, folder or root in /proc.
struct Domain {
  /// Nothing outside can be signalled. Needs kScopedAbi.
  bool scope_signals = false;
  /// No abstract UNIX socket of an outsider can be connected to. Needs kScopedAbi.
  bool scope_sockets = false;
  /// Set-user-id programs have no effect inside. Without CAP_SYS_ADMIN there is no domain without.
  bool no_new_privs = true;
  /// Files and folders, absolute and resolved, that are closed with all that is below them: not
  /// readable, writable or executable. Names and stat(2) stay visible. Empty = no file rules.
  std::vector<std::string> closed;
  /// Below closed ones, open all the same; with `read_only`, or for everything.
  struct Opening {
    std::string path;
    bool read_only = false;
  };
  std::vector<Opening> openings;
};

/// Enters the domain. File rules list what
/// is open, so what is made later beside a closed path (not below an open one) is closed, too.
/// ENOSYS, EOPNOTSUPP: the kernel has no Landlock or it is off.
base::Result<void> enter(const Domain& domain);

}  // namespace contexts::init
