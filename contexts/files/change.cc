#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "contexts/files/draft.h"
#include "contexts/files/operations.h"

namespace contexts::files {
namespace {

Outcome<void> copy_contents(int from, int to) {
  char block[64u << 10];
  for (;;) {
    const ssize_t got = ::read(from, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_failed();
    if (got == 0) return {};
    auto written = base::write_all(to, {block, static_cast<std::size_t>(got)});
    if (!written) return failed(written.error().code);
  }
}

/// A file of another file system, by a copy. EXDEV: it is no regular file.
Outcome<void> move_across(const Place& from, const Place& to, const wire::FileRequest& request) {
  auto info = look(from);
  if (!info) return tl::unexpected<wire::FileFailed>(info.error());
  if (!*info || !S_ISREG((*info)->st_mode)) return failed(EXDEV);
  auto file = open_to_read(request.path);
  if (!file) return tl::unexpected<wire::FileFailed>(file.error());
  auto draft = Draft::make(to);
  if (!draft) return tl::unexpected<wire::FileFailed>(draft.error());
  if (auto copied = copy_contents(file->borrow(), draft->file()); !copied) return copied;
  (void)!::fchown(draft->file(), (*info)->st_uid, (*info)->st_gid);
  if (::fchmod(draft->file(), (*info)->st_mode & 07777) != 0) return os_failed();
  const timespec times[] = {(*info)->st_atim, (*info)->st_mtim};
  (void)::futimens(draft->file(), times);
  if (auto published = draft->publish(to, request.replaces); !published) return published;
  if (::unlinkat(from.folder.borrow(), from.name.c_str(), 0) != 0) return os_failed();
  return {};
}

}  // namespace

Outcome<void> stat(Client& client, const wire::FileRequest& request) {
  struct stat info {};
  const int flags = request.follows ? 0 : AT_SYMLINK_NOFOLLOW;
  if (::fstatat(AT_FDCWD, request.path.c_str(), &info, flags) != 0) return os_failed();
  wire::FileEntry entry = entry_of(AT_FDCWD, request.path, info);
  entry.name = last_part(request.path);
  client.send(entry);
  return {};
}

Outcome<void> make_folder(const wire::FileRequest& request) {
  if (request.with_parents) {
    if (auto made = make_folders_above(request.path); !made) return made;
  }
  if (::mkdir(request.path.c_str(), 0777) != 0) {
    const int error = errno;
    struct stat info {};
    const bool will_do = request.with_parents && error == EEXIST &&
                         ::stat(request.path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (!will_do) return failed(error);
    return {};
  }
  // Whatever the umask says.
  if (request.has_mode && ::chmod(request.path.c_str(), request.mode & 07777) != 0) {
    return os_failed();
  }
  return {};
}

Outcome<void> move(const wire::FileRequest& request) {
  auto from = place_of(request.path);
  if (!from) return tl::unexpected<wire::FileFailed>(from.error());
  if (request.with_parents) {
    if (auto made = make_folders_above(request.to); !made) return made;
  }
  auto to = place_of(request.to);
  if (!to) return tl::unexpected<wire::FileFailed>(to.error());
  auto moved = rename_to_free_name(*from, *to);
  if (!moved && moved.error().error == EEXIST && request.replaces) {
    if (::renameat(from->folder.borrow(), from->name.c_str(), to->folder.borrow(),
                   to->name.c_str()) == 0) {
      return {};
    }
    return os_failed();
  }
  if (!moved && moved.error().error == EXDEV) return move_across(*from, *to, request);
  return moved;
}

Outcome<void> link(const wire::FileRequest& request) {
  if (::symlink(request.to.c_str(), request.path.c_str()) == 0) return {};
  if (errno != EEXIST || !request.replaces) return os_failed();
  // A folder is not replaced: EISDIR.
  if (::unlink(request.path.c_str()) != 0) return os_failed();
  if (::symlink(request.to.c_str(), request.path.c_str()) != 0) return os_failed();
  return {};
}

Outcome<void> set_mode(const wire::FileRequest& request) {
  if (::chmod(request.path.c_str(), request.mode & 07777) != 0) return os_failed();
  return {};
}

}  // namespace contexts::files
