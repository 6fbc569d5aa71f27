#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace contexts {

/// The ABI that limits what may be executed without stopping renames between folders (landlock(7)).
constexpr int kLandlockExecAbi = 2;

/// The kernel's Landlock ABI; 0 = none.
int landlock_abi();

/// A ruleset that lets only `files`, and what lies beneath those of them that are folders, be
/// executed; what does not exist is left out. Not entered. It handles LANDLOCK_ACCESS_FS_REFER,
/// which whoever enters it must grant on its own root. ENOSYS, EOPNOTSUPP: no Landlock.
base::Result<base::UniqueFd> exec_ruleset(const std::vector<std::string>& files);

}  // namespace contexts
