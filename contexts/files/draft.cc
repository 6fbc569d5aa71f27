#include "contexts/files/draft.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace contexts::files {
namespace {

constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE, linux/fs.h
constexpr int kNameTries = 100;

std::string random_name() {
  std::uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);
  std::string name = ".airlock-";
  for (int i = 0; i < 16; ++i, number >>= 4) name += "0123456789abcdef"[number & 15];
  return name;
}

/// How a file without a name is found to be given one (open(2), O_TMPFILE).
std::string through_proc(int file) { return "/proc/self/fd/" + std::to_string(file); }

}  // namespace

Outcome<Draft> Draft::make(const Place& place) {
  const int folder = place.folder.borrow();
  base::UniqueFd file(::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file && ::access(through_proc(file.borrow()).c_str(), F_OK) == 0) {
    return Draft(folder, std::move(file), {});
  }
  // Only some file systems have it, and only /proc gives it a name.
  for (int i = 0; i < kNameTries; ++i) {
    std::string name = random_name();
    file.reset(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file) return Draft(folder, std::move(file), std::move(name));
    if (errno != EEXIST) return os_failed();
  }
  return failed(EEXIST);
}

Draft::Draft(Draft&& other) noexcept
    : folder_(other.folder_), file_(std::move(other.file_)), name_(std::move(other.name_)) {
  other.name_.clear();
}

Draft::~Draft() {
  if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
}

Outcome<void> Draft::link_as(const std::string& name) const {
  const int done = ::linkat(AT_FDCWD, through_proc(file_.borrow()).c_str(), folder_, name.c_str(),
                            AT_SYMLINK_FOLLOW);
  if (done != 0) return os_failed();
  return {};
}

Outcome<void> Draft::publish(const Place& place, bool replaces) {
  if (name_.empty() && !replaces) return link_as(place.name);
  for (int i = 0; name_.empty() && i < kNameTries; ++i) {
    std::string name = random_name();
    const auto linked = link_as(name);
    if (linked) {
      name_ = std::move(name);
    } else if (linked.error().error != EEXIST) {
      return linked;
    }
  }
  if (!replaces) {
    const Place here{base::UniqueFd(::fcntl(folder_, F_DUPFD_CLOEXEC, 0)), name_};
    if (auto renamed = rename_to_free_name(here, place); !renamed) return renamed;
  } else if (::renameat(folder_, name_.c_str(), place.folder.borrow(), place.name.c_str()) != 0) {
    return os_failed();
  }
  name_.clear();
  return {};
}

Outcome<void> rename_to_free_name(const Place& from, const Place& to) {
  if (::syscall(SYS_renameat2, from.folder.borrow(), from.name.c_str(), to.folder.borrow(),
                to.name.c_str(), kNoReplace) == 0) {
    return {};
  }
  if (errno != EINVAL && errno != ENOSYS) return os_failed();
  auto there = look(to);
  if (!there) return tl::unexpected<wire::FileFailed>(there.error());
  if (*there) return failed(EEXIST);
  if (::renameat(from.folder.borrow(), from.name.c_str(), to.folder.borrow(), to.name.c_str()) !=
      0) {
    return os_failed();
  }
  return {};
}

}  // namespace contexts::files
