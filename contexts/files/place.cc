#include "contexts/files/place.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "wire/file_tag.h"

namespace contexts::files {
namespace {

constexpr int kMostSymlinks = 40;    // as the kernel: MAXSYMLINKS
constexpr int kLockTries = 5 * 200;  // 5 s
constexpr timespec kLockPause{0, 5'000'000};

std::string without_slashes_at_end(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// "a/b" → "a", "b" → ".", "/b" → "/".
std::string folder_above(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string link_target(int folder, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(folder, name.c_str(), target, sizeof target - 1);
  return size < 0 ? std::string() : std::string(target, static_cast<std::size_t>(size));
}

wire::FileType type_of(mode_t mode) {
  if (S_ISREG(mode)) return wire::FileType::file;
  if (S_ISDIR(mode)) return wire::FileType::folder;
  if (S_ISLNK(mode)) return wire::FileType::symlink;
  if (S_ISFIFO(mode)) return wire::FileType::fifo;
  if (S_ISSOCK(mode)) return wire::FileType::socket;
  if (S_ISCHR(mode) || S_ISBLK(mode)) return wire::FileType::device;
  return wire::FileType::other;
}

}  // namespace

std::string last_part(std::string path) {
  path = without_slashes_at_end(std::move(path));
  const auto slash = path.rfind('/');
  return slash == std::string::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

Outcome<Place> place_of(const std::string& path) {
  if (path.empty()) return failed(ENOENT);
  const std::string whole = without_slashes_at_end(path);
  Place place{{}, last_part(whole)};
  if (place.name == "/" || place.name == "." || place.name == "..") return failed(EINVAL);
  place.folder.reset(::open(folder_above(whole).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.folder) return os_failed();
  return place;
}

Outcome<Place> place_to_write(std::string path) {
  for (int i = 0; i < kMostSymlinks; ++i) {
    const std::string last = last_part(path);
    if (path.ends_with('/') || last == "." || last == "..") return failed(EISDIR);
    auto place = place_of(path);
    if (!place) return place;
    const std::string target = link_target(place->folder.borrow(), place->name);
    if (target.empty()) return place;
    path = target.starts_with('/') ? target : folder_above(path) + "/" + target;
  }
  return failed(ELOOP);
}

Outcome<std::optional<struct stat>> look(const Place& place) {
  struct stat info {};
  if (::fstatat(place.folder.borrow(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    return info;
  }
  if (errno == ENOENT) return std::nullopt;
  return os_failed();
}

Outcome<void> make_folders_above(const std::string& path) {
  const std::string whole = without_slashes_at_end(path);
  for (auto slash = whole.find('/', 1); slash != std::string::npos;
       slash = whole.find('/', slash + 1)) {
    const std::string folder = whole.substr(0, slash);
    if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) continue;
    // Folders that are there may be on file systems where nothing can be made.
    const int error = errno;
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) return failed(error);
  }
  return {};
}

wire::FileEntry entry_of(int folder, const std::string& name, const struct stat& info) {
  wire::FileEntry entry{type_of(info.st_mode), name};
  if (entry.type == wire::FileType::symlink) entry.target = link_target(folder, name);
  entry.size = static_cast<std::uint64_t>(info.st_size);
  entry.mode = info.st_mode & 07777;
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
  entry.mtime_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  entry.inode = info.st_ino;
  return entry;
}

tl::unexpected<wire::FileFailed> no_file(const struct stat& info) {
  return S_ISDIR(info.st_mode) ? failed(EISDIR) : failed(wire::FileFailed::Why::not_a_file);
}

// Looked at first: opening a device has effects, a FIFO's end waits for the other. Looked at again,
// since it may be another file by then; that one was opened without waiting.
Outcome<base::UniqueFd> open_to_read(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return os_failed();
  if (!S_ISREG(info.st_mode)) return no_file(info);
  base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file || ::fstat(file.borrow(), &info) != 0) return os_failed();
  if (!S_ISREG(info.st_mode)) return no_file(info);
  return file;
}

std::string tag_at(const Place& place, const std::optional<struct stat>& info) {
  if (!info || !S_ISREG(info->st_mode)) return {};
  return wire::file_tag(entry_of(place.folder.borrow(), place.name, *info));
}

Outcome<void> check_conditions(const wire::FileRequest& request, const Place& place) {
  const auto info = look(place);
  if (!info) return tl::unexpected<wire::FileFailed>(info.error());
  if (!wire::are_met(request, tag_at(place, *info))) {
    return failed(wire::FileFailed::Why::condition);
  }
  return {};
}

Outcome<base::UniqueFd> lock_folder(const Place& place) {
  base::UniqueFd folder(
      ::openat(place.folder.borrow(), ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
  if (!folder) return folder;
  // A program of the context may hold it for as long as it likes.
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(folder.borrow(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return folder;
    ::nanosleep(&kLockPause, nullptr);
  }
  return failed(EBUSY);
}

}  // namespace contexts::files
