#include "contexts/folder_remover.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/folder.h"

namespace contexts {
namespace {

/// After rename(2): a daemon before this one, with the same pid, may have left some.
bool is_taken() { return errno == ENOTEMPTY || errno == EEXIST; }

/// Removes a folder without recursion, so a context that nests folders as deep as it likes uses up
/// neither descriptors nor stack: each folder found in it is moved up beside it, and comes later.
class Removal {
 public:
  Removal(const std::string& parent, std::string name)
      : parent_(::open(parent.c_str(), kFlags)), name_(std::move(name)) {}

  void run() {
    if (!parent_) return;
    remove(name_);
    for (std::size_t number = 1; number <= moved_; ++number) remove(aside(number));
  }

 private:
  static constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  std::string aside(std::size_t number) const { return name_ + "." + std::to_string(number); }

  void remove(const std::string& name) {
    if (const base::UniqueFd folder(::openat(parent_.borrow(), name.c_str(), kFlags)); folder) {
      empty(folder.borrow());
    }
    ::unlinkat(parent_.borrow(), name.c_str(), AT_REMOVEDIR);
  }

  void empty(int folder) {
    const auto listed = base::list(folder);
    while (const dirent* entry = listed ? ::readdir(listed.get()) : nullptr) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") take(folder, entry->d_name);
    }
  }

  void take(int folder, const char* entry) {
    if (::unlinkat(folder, entry, 0) == 0 || ::unlinkat(folder, entry, AT_REMOVEDIR) == 0) return;
    while (::renameat(folder, entry, parent_.borrow(), aside(++moved_).c_str()) != 0 &&
           is_taken()) {
    }
  }

  base::UniqueFd parent_;
  const std::string name_;
  /// The last number of those that were moved aside: numbers, as names may be millions.
  std::size_t moved_ = 0;
};

void remove_now(const std::string& folder) {
  const std::filesystem::path path(folder);
  Removal(path.parent_path().string(), path.filename().string()).run();
}

}  // namespace

void FolderRemover::remove(const std::string& folder) {
  const std::string parent = std::filesystem::path(folder).parent_path().string();
  std::string aside;
  int done = 0;
  do {
    aside = parent + "/.gone-" + std::to_string(::getpid()) + "-" + std::to_string(++taken_);
    done = ::rename(folder.c_str(), aside.c_str());
  } while (done != 0 && is_taken());
  if (done != 0) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(aside));
    if (std::exchange(is_working_, true)) return;
  }
  start();
}

void FolderRemover::start() {
  // Signals are for the event loop's thread.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    worker_ = std::jthread([this] { work(); });  // waits for the last one, which has nothing to do
  } catch (const std::system_error&) {           // no further thread can be had now (EAGAIN)
    work();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void FolderRemover::work() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    const std::string folder = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    remove_now(folder);
    lock.lock();
  }
  is_working_ = false;
}

}  // namespace contexts
