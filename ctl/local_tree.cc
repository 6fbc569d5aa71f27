#include "ctl/local_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace ctl {

using base::Result;

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

bool is_plain(std::string_view part) { return !part.empty() && part != "." && part != ".."; }

}  // namespace

Result<LocalTree> LocalTree::open(const std::string& path) {
  base::UniqueFd root(::open(path.c_str(), kFolder));
  if (!root) return base::os_error(path);
  return LocalTree(std::move(root));
}

Result<LocalTree::Place> LocalTree::place_of(const std::string& name) const {
  auto folder = base::duplicate(root_.borrow());
  if (!folder) return tl::unexpected<base::Error>(folder.error());
  std::string_view rest = name;
  for (;;) {
    const auto slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (!is_plain(part)) return base::failure("a name that leads elsewhere", EINVAL);
    if (slash == std::string_view::npos) return Place{std::move(*folder), part};
    base::UniqueFd below(::openat(folder->borrow(), part.c_str(), kFolder | O_NOFOLLOW));
    if (!below) return base::os_error(name);
    *folder = std::move(below);
    rest.remove_prefix(slash + 1);
  }
}

Result<void> LocalTree::make_folder(const std::string& name, mode_t mode) {
  auto place = place_of(name);
  if (!place) return tl::unexpected<base::Error>(place.error());
  if (::mkdirat(place->folder.borrow(), place->name.c_str(), mode) != 0 && errno != EEXIST) {
    return base::os_error(name);
  }
  return {};
}

Result<void> LocalTree::make_link(const std::string& name, const std::string& target) {
  auto place = place_of(name);
  if (!place) return tl::unexpected<base::Error>(place.error());
  const int folder = place->folder.borrow();
  if (::symlinkat(target.c_str(), folder, place->name.c_str()) == 0) return {};
  // In the place of what is there, unless that is a folder.
  const bool is_there = errno == EEXIST && ::unlinkat(folder, place->name.c_str(), 0) == 0;
  if (is_there && ::symlinkat(target.c_str(), folder, place->name.c_str()) == 0) return {};
  return base::os_error(name);
}

Result<void> LocalTree::set_mode(const std::string& name, mode_t mode) {
  auto place = place_of(name);
  if (!place) return tl::unexpected<base::Error>(place.error());
  const base::UniqueFd folder(
      ::openat(place->folder.borrow(), place->name.c_str(), kFolder | O_NOFOLLOW));
  if (!folder || ::fchmod(folder.borrow(), mode) != 0) return base::os_error(name);
  return {};
}

Result<LocalTree::File> LocalTree::new_file(const std::string& name) {
  auto place = place_of(name);
  if (!place) return tl::unexpected<base::Error>(place.error());
  return File(std::move(place->folder), std::move(place->name));
}

LocalTree::File::File(File&& other) noexcept
    : folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      draft_(std::exchange(other.draft_, {})),
      file_(std::move(other.file_)) {}

LocalTree::File::~File() {
  if (!draft_.empty()) ::unlinkat(folder_.borrow(), draft_.c_str(), 0);
}

Result<void> LocalTree::File::create(mode_t mode) {
  const std::string draft = ".airlock-" + std::to_string(::getpid()) + ".part";
  ::unlinkat(folder_.borrow(), draft.c_str(), 0);  // of an earlier process of this number
  file_.reset(::openat(folder_.borrow(), draft.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return base::os_error(name_);
  draft_ = draft;
  if (::fchmod(file_.borrow(), mode) != 0) return base::os_error(name_);
  return {};
}

Result<void> LocalTree::File::write(std::string_view bytes) {
  auto written = base::write_all(file_.borrow(), bytes);
  if (!written) return base::failure(name_, written.error().code);
  return {};
}

Result<void> LocalTree::File::publish() {
  if (::renameat(folder_.borrow(), draft_.c_str(), folder_.borrow(), name_.c_str()) != 0) {
    return base::os_error(name_);
  }
  draft_.clear();
  return {};
}

}  // namespace ctl
