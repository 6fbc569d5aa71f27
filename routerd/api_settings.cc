#include "routerd/api_settings.h"

#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace routerd {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestFile = 1u << 20;

base::Result<std::string> read_tokens(const std::string& path) {
  auto file = base::open_file(path, O_RDONLY | O_NOCTTY);
  if (!file) return tl::unexpected<base::Error>(file.error());
  struct stat info {};
  if (::fstat(file->borrow(), &info) != 0) return base::os_error("stat " + path);
  const bool is_safe = S_ISREG(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
                       (info.st_uid == 0 || info.st_uid == ::geteuid());
  if (!is_safe) {
    return base::failure("use " + path, EPERM,
                         "expected a file that only root, or the daemon's user, can write");
  }
  return base::read_all(file->borrow(), kLargestFile);
}

}  // namespace

ApiSettings::ApiSettings(boost::asio::io_context& io, ApiConfig config)
    : config_(std::move(config)), changes_(io) {
  watch();
  reload();
}

json ApiSettings::current() const {
  return {{"tokens", tokens_},
          {"hosts", config_.hosts},
          {"origins", config_.origins},
          {"requestsPerSecond", config_.requests_per_second},
          {"port", config_.port}};
}

void ApiSettings::reload() {
  if (config_.tokens_file.empty()) return;
  auto text = read_tokens(config_.tokens_file);
  if (!text) spdlog::error("api: no tokens: {}", text.error().message());
  std::string tokens = text ? std::move(*text) : std::string();
  if (tokens == tokens_) return;
  tokens_ = std::move(tokens);
  const auto followers = followers_;  // one may leave meanwhile
  for (const auto& [number, follower] : followers) follower();
}

std::uint64_t ApiSettings::follow(std::function<void()> follower) {
  followers_.emplace(next_follower_, std::move(follower));
  return next_follower_++;
}

// The folder: editors put a new file in the place of the old one.
void ApiSettings::watch() {
  if (config_.tokens_file.empty()) return;
  const std::string folder = config_.tokens_file.substr(0, config_.tokens_file.rfind('/'));
  base::UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  constexpr unsigned kChanges =
      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;
  if (!inotify || ::inotify_add_watch(inotify.borrow(), folder.c_str(), kChanges) < 0) {
    spdlog::warn("api: {} cannot be watched; 'airlock reload' reads the tokens again", folder);
    return;
  }
  changes_.assign(inotify.release());
  await_change();
}

void ApiSettings::await_change() {
  changes_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code error) {
                        if (error) return;  // cancelled: this object may be gone
                        char events[4096];
                        while (::read(changes_.native_handle(), events, sizeof events) > 0) {
                        }
                        reload();
                        await_change();
                      });
}

}  // namespace routerd
