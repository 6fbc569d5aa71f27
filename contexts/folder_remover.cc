#include "contexts/folder_remover.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"

namespace contexts {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// After rename(2): a daemon before this one, with the same pid, may have left some.
bool is_taken() { return errno == ENOTEMPTY || errno == EEXIST; }

/// Removes a folder without recursion, so a context that nests folders as deep as it likes uses up
/// neither descriptors nor stack: each folder found in it is moved up beside it, and comes later.
class Removal {
 public:
  Removal(const std::string& parent, std::string name)
      : parent_(::open(parent.c_str(), kFlags)), prefix_(name + "."), folders_{std::move(name)} {}

  void run() {
    while (parent_ && !folders_.empty()) {
      const std::string name = std::move(folders_.back());
      folders_.pop_back();
      empty(name);
      ::unlinkat(parent_.borrow(), name.c_str(), AT_REMOVEDIR);
    }
  }

 private:
  static constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  void empty(const std::string& name) {
    const int folder = ::openat(parent_.borrow(), name.c_str(), kFlags);
    if (folder < 0) return;
    const std::unique_ptr<DIR, CloseFolder> listed(::fdopendir(folder));
    if (!listed) ::close(folder);
    while (const dirent* entry = listed ? ::readdir(listed.get()) : nullptr) {
      const std::string_view entry_name = entry->d_name;
      if (entry_name != "." && entry_name != "..") take(folder, entry->d_name);
    }
  }

  void take(int folder, const char* entry) {
    if (::unlinkat(folder, entry, 0) == 0 || ::unlinkat(folder, entry, AT_REMOVEDIR) == 0) return;
    std::string aside;
    int done = 0;
    do {
      aside = prefix_ + std::to_string(++moved_);
      done = ::renameat(folder, entry, parent_.borrow(), aside.c_str());
    } while (done != 0 && is_taken());
    if (done == 0) folders_.push_back(std::move(aside));
  }

  base::UniqueFd parent_;
  const std::string prefix_;
  /// Still to be emptied and removed, in `parent_`.
  std::vector<std::string> folders_;
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
