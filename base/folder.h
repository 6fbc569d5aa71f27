#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <memory>

#include "base/unique_fd.h"

namespace base {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
/// For readdir(3).
using Folder = std::unique_ptr<DIR, CloseFolder>;

/// The entries of an open folder, whatever was read of it before. Null: it cannot be read.
inline Folder list(int folder) {
  UniqueFd own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Folder listed(own ? ::fdopendir(own.borrow()) : nullptr);
  if (listed) (void)own.release();
  return listed;
}

}  // namespace base
