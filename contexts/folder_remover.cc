#include "contexts/folder_remover.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace contexts {

void FolderRemover::remove(const std::string& folder) {
  const std::string aside =
      folder + ".gone-" + std::to_string(::getpid()) + "-" + std::to_string(++taken_);
  if (::rename(folder.c_str(), aside.c_str()) != 0) return;
  std::erase_if(running_, [](const std::future<void>& each) {
    return each.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  // Signals are for the event loop's thread.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  running_.push_back(std::async(std::launch::async, [aside] {
    std::error_code ignored;
    std::filesystem::remove_all(aside, ignored);
  }));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace contexts
