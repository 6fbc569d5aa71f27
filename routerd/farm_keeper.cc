#include "routerd/farm_keeper.h"

#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstring>

#include "contexts/system_folders.h"

namespace routerd {
namespace {

constexpr unsigned kChanges = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                              IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/// The name under which it is watched.
std::string name_of(const contexts::UpperPath& place) { return place.layer + "/" + place.below; }

}  // namespace

base::Result<std::unique_ptr<FarmKeeper>> FarmKeeper::create(boost::asio::io_context& io,
                                                             contexts::Farm farm) {
  const int inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) return base::os_error("watch the covered folders");
  return std::unique_ptr<FarmKeeper>(new FarmKeeper(io, std::move(farm), inotify));
}

FarmKeeper::FarmKeeper(boost::asio::io_context& io, contexts::Farm farm, int inotify)
    : farm_(std::move(farm)), inotify_(io, inotify) {
  wait();
}

bool FarmKeeper::is_watched(const std::string& path) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [&path](const auto& watched) { return watched.second.path == path; });
}

void FarmKeeper::watch(const std::string& opened, const std::string& path,
                       const std::string& folder) {
  const int number = ::inotify_add_watch(inotify_.native_handle(), opened.c_str(), kChanges);
  if (number < 0) {
    spdlog::warn("{} cannot be watched for new programs: {}", path, std::strerror(errno));
  } else {
    watched_[number] = {path, folder};
  }
}

void FarmKeeper::unwatch(const std::string& path) {
  std::erase_if(watched_, [&](const auto& watched) {
    if (watched.second.path != path) return false;
    ::inotify_rm_watch(inotify_.native_handle(), watched.first);
    return true;
  });
}

// Watched before it is read: what comes in between is seen twice rather than never.
base::Result<std::string> FarmKeeper::cover(const std::string& folder) {
  const bool was_watched = is_watched(folder);
  const bool was_covered = farm_.covered().contains(folder);
  if (!was_watched) watch(folder, folder, folder);
  const bool has_layer_anew = follow_in(folder);
  auto covered = farm_.cover(folder);
  if (was_covered && (!was_watched || has_layer_anew)) farm_.refresh(folder);
  return covered;
}

void FarmKeeper::follow(const std::string& upper) {
  if (upper == upper_) return;
  for (const auto& [folder, shims] : farm_.covered()) {
    if (const auto old = contexts::upper_path(upper_, folder)) unwatch(name_of(*old));
  }
  const bool had_none = upper_.empty();
  upper_ = upper;
  for (const auto& [folder, shims] : farm_.covered()) {
    follow_in(folder);
    // A refresh of all takes as long as to cover the folder.
    had_none ? farm_.refresh_layer(folder) : farm_.refresh(folder);
  }
}

bool FarmKeeper::follow_in(const std::string& folder) {
  const auto place = upper_.empty() ? std::nullopt : contexts::upper_path(upper_, folder);
  farm_.set_layer(folder, place);
  if (!place || is_watched(name_of(*place))) return false;
  const auto layer = contexts::open_layer(*place);
  if (layer) watch("/proc/self/fd/" + std::to_string(layer.borrow()), name_of(*place), folder);
  return static_cast<bool>(layer);
}

void FarmKeeper::wait() {
  inotify_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code error) {
                        if (error) return;  // cancelled: this object may be gone
                        take_events();
                        wait();
                      });
}

void FarmKeeper::take_events() {
  alignas(inotify_event) char block[16 << 10];
  ssize_t length = 0;
  while ((length = ::read(inotify_.native_handle(), block, sizeof block)) > 0) {
    for (const char* at = block; at < block + length;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      take(event->wd, event->mask, event->len > 0 ? event->name : "");
      at += sizeof *event + event->len;
    }
  }
}

void FarmKeeper::take(int number, unsigned mask, const std::string& name) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    for (const auto& [folder, shims] : farm_.covered()) farm_.refresh(folder);
    return;
  }
  const auto found = watched_.find(number);
  if (found == watched_.end()) return;
  if (!name.empty()) return farm_.refresh(found->second.folder, name);
  farm_.refresh(found->second.folder);
  // Another folder of this name will be watched at the next launch.
  if ((mask & (IN_MOVE_SELF | IN_DELETE_SELF)) == 0) return;
  ::inotify_rm_watch(inotify_.native_handle(), number);
  watched_.erase(found);
}

}  // namespace routerd
