#pragma once

#include <future>
#include <string>
#include <vector>

namespace contexts {

/// Removes folders beside whoever asked: what a context has installed may take seconds.
class FolderRemover {
 public:
  /// Waits until all are removed.
  ~FolderRemover() = default;

  /// `folder` is gone from its place when this returns: it is renamed to a name of this process's
  /// own beside it. What cannot be removed stays there; nothing if there is no such folder.
  void remove(const std::string& folder);

 private:
  unsigned taken_ = 0;
  /// Each waits for its thread when it is destroyed (std::async).
  std::vector<std::future<void>> running_;
};

}  // namespace contexts
