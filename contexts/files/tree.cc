// Folders with all that is in them. Symlinks below are never followed.

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "contexts/files/operations.h"
#include "contexts/files/place.h"
#include "wire/limits.h"

namespace contexts::files {
namespace {

/// Each level is an open folder.
constexpr int kDeepest = 200;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

/// The names in an open folder; some, if reading it failed.
Outcome<std::vector<std::string>> names_in(int folder) {
  const int copy = ::openat(folder, ".", kFolder);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) return os_failed();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  ::closedir(stream);
  if (error != 0) return failed(error);
  return names;
}

class Listing {
 public:
  Listing(Client& client, const wire::FileRequest& request) : client_(client), request_(request) {}
  bool is_truncated() const { return is_truncated_; }

  Outcome<void> add_folder(int folder, const std::string& prefix, int depth) {
    auto names = names_in(folder);
    if (!names) return tl::unexpected<wire::FileFailed>(names.error());
    for (const auto& name : *names) {
      if (client_.is_gone()) return {};
      if (told_ == request_.limit || prefix.size() + name.size() >= wire::kMaxPath) {
        is_truncated_ = true;
        return {};
      }
      add(folder, name, prefix, depth);
    }
    return {};
  }

 private:
  void add(int folder, const std::string& name, const std::string& prefix, int depth) {
    struct stat info {};
    // It may have gone meanwhile.
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    wire::FileEntry entry = entry_of(folder, name, info);
    entry.name = prefix + name;
    client_.send(entry);
    ++told_;
    if (!request_.is_recursive || !S_ISDIR(info.st_mode)) return;
    const base::UniqueFd below(
        depth == kDeepest ? -1 : ::openat(folder, name.c_str(), kFolder | O_NOFOLLOW));
    if (!below || !add_folder(below.borrow(), entry.name + "/", depth + 1)) is_truncated_ = true;
  }

  Client& client_;
  const wire::FileRequest& request_;
  std::uint32_t told_ = 0;
  bool is_truncated_ = false;
};

Outcome<void> remove_all_in(int folder) {
  auto names = names_in(folder);
  if (!names) return tl::unexpected<wire::FileFailed>(names.error());
  for (const auto& name : *names) {
    if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) continue;
    const int error = errno;
    const base::UniqueFd below(::openat(folder, name.c_str(), kFolder | O_NOFOLLOW));
    if (!below) return failed(errno == ENOTDIR || errno == ELOOP ? error : errno);
    if (auto removed = remove_all_in(below.borrow()); !removed) return removed;
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return os_failed();
  }
  return {};
}

}  // namespace

Outcome<bool> list(Client& client, const wire::FileRequest& request) {
  const base::UniqueFd folder(::open(request.path.c_str(), kFolder));
  if (!folder) return os_failed();
  Listing listing(client, request);
  if (auto done = listing.add_folder(folder.borrow(), "", 0); !done) {
    return tl::unexpected<wire::FileFailed>(done.error());
  }
  return listing.is_truncated();
}

Outcome<void> remove(const wire::FileRequest& request) {
  auto place = place_of(request.path);
  if (!place) return tl::unexpected<wire::FileFailed>(place.error());
  const int folder = place->folder.borrow();
  base::UniqueFd lock;
  if (!request.if_match.empty()) {
    auto locked = lock_folder(*place);
    if (!locked) return tl::unexpected<wire::FileFailed>(locked.error());
    lock = std::move(*locked);
  }
  auto there = look(*place);
  if (!there) return tl::unexpected<wire::FileFailed>(there.error());
  if (!*there) return failed(ENOENT);
  if (auto met = check_conditions(request, *place); !met) return met;
  const bool is_folder = S_ISDIR((*there)->st_mode);
  if (is_folder && request.is_recursive) {
    const base::UniqueFd below(::openat(folder, place->name.c_str(), kFolder | O_NOFOLLOW));
    if (!below) return os_failed();
    if (auto removed = remove_all_in(below.borrow()); !removed) return removed;
  }
  if (::unlinkat(folder, place->name.c_str(), is_folder ? AT_REMOVEDIR : 0) != 0) {
    return os_failed();
  }
  return {};
}

}  // namespace contexts::files
