#include "contexts/farm.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "wire/stub_folder.h"

namespace contexts {

using base::Result;

namespace {

constexpr const char* kStub = "airlock-stub";
/// Stands for files that cannot be executed, so that trying says EACCES.
constexpr const char* kBlank = "blank";

bool is_entry(const dirent& entry) {
  const std::string_view name = entry.d_name;
  return name != "." && name != "..";
}

Result<std::string> stamped(const std::string& stub, const std::string& airlock_folder) {
  auto bytes = base::read_file(stub);
  if (!bytes) return bytes;
  const auto at =
      bytes->find(std::string_view(wire::kStubFolderMark, sizeof wire::kStubFolderMark));
  if (at == std::string::npos) return base::failure(stub, ENOEXEC, "no stub of this version");
  if (airlock_folder.size() >= wire::kMaxStubFolder) {
    return base::failure(airlock_folder, ENAMETOOLONG);
  }
  bytes->replace(at + sizeof wire::kStubFolderMark, airlock_folder.size(), airlock_folder);
  return bytes;
}

Result<void> write_at(int folder, const char* name, const std::string& bytes, mode_t mode) {
  const base::UniqueFd file(::openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file) return base::os_error("create " + std::string(name) + " in the shim farm");
  if (::fchmod(file.borrow(), mode) != 0) return base::os_error("chmod in the shim farm");
  return base::write_all(file.borrow(), bytes);
}

/// What the shim of `name` is to be a link to; null if there is to be none.
const char* kind_of(int real, int layer, const char* name) {
  struct stat info {};
  if (::fstatat(real, name, &info, 0) == 0 && S_ISREG(info.st_mode)) {
    return (info.st_mode & 0111) != 0 ? kStub : kBlank;
  }
  if (layer < 0 || ::fstatat(layer, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return nullptr;
  if (S_ISLNK(info.st_mode)) return kStub;
  if (!S_ISREG(info.st_mode)) return nullptr;  // removed there: a character device (overlayfs)
  return (info.st_mode & 0111) != 0 ? kStub : kBlank;
}

}  // namespace

base::UniqueFd open_layer(const UpperPath& place) {
  const base::UniqueFd layer(::open(place.layer.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return base::UniqueFd(static_cast<int>(
      ::syscall(SYS_openat2, layer.borrow(), place.below.c_str(), &how, sizeof how)));
}

Result<Farm> Farm::create(base::UniqueFd root, const std::string& stub,
                          const std::string& airlock_folder) {
  auto bytes = stamped(stub, airlock_folder);
  if (!bytes) return tl::unexpected<base::Error>(bytes.error());
  Farm farm(std::move(root));
  auto written = write_at(farm.root_.borrow(), kStub, *bytes, 0755);
  if (written) written = write_at(farm.root_.borrow(), kBlank, "", 0644);
  if (!written) return tl::unexpected<base::Error>(written.error());
  return farm;
}

std::string Farm::stub_path() const {
  return "/proc/self/fd/" + std::to_string(root_.borrow()) + "/" + kStub;
}

Result<std::string> Farm::cover(const std::string& folder) {
  if (const auto found = covered_.find(folder); found != covered_.end()) return found->second;
  const std::string shims = std::to_string(covered_.size());
  if (::mkdirat(root_.borrow(), shims.c_str(), 0755) != 0) {
    return base::os_error("cover " + folder);
  }
  if (::fchmodat(root_.borrow(), shims.c_str(), 0755, 0) != 0) {
    return base::os_error("cover " + folder);
  }
  covered_.emplace(folder, shims);
  refresh(folder);
  return shims;
}

void Farm::set_layer(const std::string& folder, std::optional<UpperPath> more) {
  if (more) {
    layers_[folder] = std::move(*more);
  } else {
    layers_.erase(folder);
  }
}

Farm::Sources Farm::open_sources(const std::string& folder) const {
  Sources sources;
  const auto found = covered_.find(folder);
  if (found == covered_.end()) return sources;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  sources.shims.reset(::openat(root_.borrow(), found->second.c_str(), kFlags));
  sources.real.reset(::open(folder.c_str(), kFlags));
  const auto layer = layers_.find(folder);
  if (layer != layers_.end()) sources.layer = open_layer(layer->second);
  return sources;
}

void Farm::refresh(const std::string& folder) {
  const auto sources = open_sources(folder);
  if (!sources.shims) return;
  // The shims first: what is gone loses its own.
  for (const auto* names : {&sources.shims, &sources.real, &sources.layer}) {
    if (*names) link_all(sources, folder, names->borrow());
  }
}

void Farm::refresh_layer(const std::string& folder) {
  const auto sources = open_sources(folder);
  if (sources.shims && sources.layer) link_all(sources, folder, sources.layer.borrow());
}

void Farm::link_all(const Sources& sources, const std::string& folder, int names) {
  const auto listed = base::list(names);
  while (const dirent* entry = listed ? ::readdir(listed.get()) : nullptr) {
    if (is_entry(*entry)) link_one(sources, folder, entry->d_name);
  }
}

void Farm::refresh(const std::string& folder, const std::string& name) {
  const auto sources = open_sources(folder);
  if (sources.shims) link_one(sources, folder, name.c_str());
}

void Farm::keep_link(const std::string& folder, const std::string& name) {
  if (kept_links_.insert(folder + "/" + name).second) refresh(folder, name);
}

// What is there already and right stays: a name that goes and comes again is missed by whoever
// searches PATH in between.
void Farm::link_one(const Sources& sources, const std::string& folder, const char* name) {
  const int shims = sources.shims.borrow();
  const auto kind = kind_of(sources.real.borrow(), sources.layer.borrow(), name);
  if (!kind) {
    ::unlinkat(shims, name, 0);
    return;
  }
  if (kept_links_.contains(folder + "/" + name)) {
    const auto target = base::read_link(folder + "/" + name);
    ::unlinkat(shims, name, 0);
    if (target) (void)::symlinkat(target->c_str(), shims, name);
    return;
  }
  if (::linkat(root_.borrow(), kind, shims, name, 0) == 0 || errno != EEXIST) return;
  struct stat shim {};
  struct stat wanted {};
  if (::fstatat(shims, name, &shim, AT_SYMLINK_NOFOLLOW) == 0 &&
      ::fstatat(root_.borrow(), kind, &wanted, 0) == 0 && shim.st_ino == wanted.st_ino) {
    return;
  }
  ::unlinkat(shims, name, 0);
  (void)::linkat(root_.borrow(), kind, shims, name, 0);
}

}  // namespace contexts
