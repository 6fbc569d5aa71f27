#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace contexts {

/// Removes folders beside whoever asked: what a context leaves may take seconds, and may be made to
/// be hard to remove. One thread, while there is something to do.
class FolderRemover {
 public:
  FolderRemover() = default;
  FolderRemover(const FolderRemover&) = delete;
  FolderRemover& operator=(const FolderRemover&) = delete;
  /// Waits until all are removed.
  ~FolderRemover() = default;

  /// `folder` is gone from its place when this returns: it is renamed to ".gone-…" beside it. What
  /// cannot be removed stays there; nothing if there is no such folder. From one thread only.
  void remove(const std::string& folder);

 private:
  void start();
  void work();

  unsigned taken_ = 0;  // names
  std::mutex mutex_;    // of these two
  std::deque<std::string> waiting_;
  bool is_working_ = false;
  std::jthread worker_;  // the last: it uses the others
};

}  // namespace contexts
