#include "contexts/runtime_dir.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "wire/requester.h"

namespace contexts {

using base::Result;

namespace {

constexpr const char* kWayOut =
    "choose a folder that can be written by --runtime-dir or AIRLOCK_RUNTIME_DIR";

std::string environment_value(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

/// Not in memory, and no overlay, which cannot be another one's upper layer.
bool is_on_disk(const std::string& folder) {
  constexpr decltype(statfs::f_type) kNone[] = {TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC};
  struct statfs info {};
  return ::statfs(folder.c_str(), &info) == 0 &&
         std::find(std::begin(kNone), std::end(kNone), info.f_type) == std::end(kNone);
}

/// `path`, or the folder in which the first missing one would be made.
std::string existing_part(std::filesystem::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path.string();
}

/// The name of one daemon's folder below the state folder: "/run/airlock" is "run-airlock".
std::string name_for(const std::string& root) {
  std::string name;
  for (const char each : root.substr(1)) {
    if (each == '-') name += '-';
    name += each == '/' ? '-' : each;
  }
  return name;
}

bool is_folder_name(const std::string& path) {
  return path.front() == '/' && std::filesystem::path(path).lexically_normal() != "/";
}

bool make_folder(const std::string& folder) {
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

/// Where a daemon that serves at `root` keeps its uppers.
std::string uppers_for(const std::string& root) {
  const std::string state = RuntimeDir::state_folder();
  const bool is_needed = !is_on_disk(root) && ::geteuid() == 0;
  if (is_needed && make_folder(state) && is_on_disk(state)) {
    std::string own = state + "/" + name_for(root);
    if (make_folder(own)) return own;
  }
  return root + "/upper";
}

}  // namespace

RuntimeDir::RuntimeDir(std::string root, bool is_private)
    : root_(std::move(root)),
      is_private_(is_private),
      uppers_(is_private_ ? root_ + "/upper" : uppers_for(root_)),
      remover_(std::make_unique<FolderRemover>()) {}

std::string RuntimeDir::state_folder() {
  const std::string chosen = environment_value("AIRLOCK_STATE_DIR");
  return chosen.empty() ? "/var/lib/airlock" : chosen;
}

std::string RuntimeDir::default_root() {
  const std::string chosen = environment_value("AIRLOCK_RUNTIME_DIR");
  return chosen.empty() ? "/run/airlock" : chosen;
}

bool RuntimeDir::has_disk_for_uppers() const { return is_on_disk(uppers_); }

bool RuntimeDir::would_have_disk(const std::string& root) {
  return is_on_disk(existing_part(root)) ||
         (::geteuid() == 0 && is_on_disk(existing_part(state_folder())));
}

Result<void> RuntimeDir::make_folders(const std::string& root) {
  const std::string folders[] = {root, root + "/view", root + "/home", root + "/root",
                                 root + "/upper"};
  for (const auto& folder : folders) {
    if (::mkdir(folder.c_str(), 0711) != 0 && errno != EEXIST) {
      return base::os_error("create the runtime folder " + folder, kWayOut);
    }
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) return base::os_error("stat " + folder);
    // One that root has made for whoever runs the container is as good.
    const bool is_others = info.st_uid == 0 && ::geteuid() != 0;
    if (is_others && ::access(folder.c_str(), W_OK | X_OK) == 0) continue;
    // Whatever the umask was: contexts of other users pass through, nobody lists.
    if (::chmod(folder.c_str(), 0711) != 0) {
      return base::os_error("use the runtime folder " + folder, kWayOut);
    }
  }
  return {};
}

Result<RuntimeDir> RuntimeDir::open(std::string root) {
  if (root.empty() || root.front() != '/') {
    return base::failure("runtime folder '" + root + "'", EINVAL, "expected an absolute path");
  }
  // sun_path has 108 bytes (unix(7)); the longest socket below is view/NAME/router.sock.
  if (root.size() > 50) {
    return base::failure("runtime folder '" + root + "'", ENAMETOOLONG, "at most 50 bytes");
  }
  // Contexts see it empty.
  if (const auto state = state_folder(); !is_folder_name(state)) {
    return base::failure("AIRLOCK_STATE_DIR=" + state, EINVAL,
                         "expected the absolute path of a folder of airlock's own");
  }
  if (auto made = make_folders(root); !made) return tl::unexpected<base::Error>(made.error());
  const std::string socket = root + "/control.sock";
  if (auto other = wire::connect_to(socket); other || other.error().code == EPERM) {
    return base::failure("serve " + root, EADDRINUSE,
                         "a daemon is already running there; use another --runtime-dir or "
                         "'airlock down'");
  }
  ::unlink(socket.c_str());
  RuntimeDir opened(std::move(root), false);
  opened.remove_what_contexts_wrote();  // of a daemon that was killed
  return opened;
}

namespace {

bool is_usable_parent(const std::string& folder) {
  struct statvfs info {};
  return !folder.empty() && folder.size() < 30 && ::statvfs(folder.c_str(), &info) == 0 &&
         (info.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0 && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

Result<RuntimeDir> RuntimeDir::make_private() {
  const std::string chosen = environment_value("AIRLOCK_RUNTIME_PARENT");
  std::vector<std::string> parents = {"/run", environment_value("XDG_RUNTIME_DIR"), "/tmp"};
  if (!chosen.empty()) parents = {chosen};
  for (const auto& parent : parents) {
    if (!is_usable_parent(parent)) continue;
    std::string root = parent + "/airlock-XXXXXX";
    if (::mkdtemp(root.data()) == nullptr) continue;
    RuntimeDir made(root, true);
    auto folders = make_folders(root);
    if (!folders) return tl::unexpected<base::Error>(folders.error());
    return made;
  }
  if (!chosen.empty()) {
    return base::failure("AIRLOCK_RUNTIME_PARENT=" + chosen, EACCES,
                         "expected a short path of a writable folder that is not mounted noexec");
  }
  return base::failure("create a runtime folder", EACCES,
                       "none of /run, $XDG_RUNTIME_DIR and /tmp is writable and executable; "
                       "set AIRLOCK_RUNTIME_PARENT");
}

RuntimeDir::RuntimeDir(RuntimeDir&& other) noexcept
    : root_(std::exchange(other.root_, {})),
      is_private_(std::exchange(other.is_private_, false)),
      uppers_(std::exchange(other.uppers_, {})),
      remover_(std::move(other.remover_)) {}

RuntimeDir::~RuntimeDir() {
  std::error_code ignored;
  if (root_.empty()) return;  // moved from
  remove_what_contexts_wrote();
  remover_.reset();
  std::filesystem::remove_all(uppers_, ignored);
  if (is_private_) {
    std::filesystem::remove_all(root_, ignored);
  } else {
    for (const char* folder : {"/view", "/home", "/root", "/upper"}) {
      std::filesystem::remove_all(root_ + folder, ignored);
    }
  }
}

namespace {

Result<void> copy_program(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) return base::failure("copy " + from + " to " + to, error.value());
  if (::chmod(to.c_str(), 0755) != 0) return base::os_error("chmod " + to);
  return {};
}

}  // namespace

Result<void> RuntimeDir::make_view(const std::string& context, const std::string& programs,
                                   bool with_router) const {
  const std::string folder = view(context);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    return base::os_error("mkdir " + folder);
  if (::chmod(folder.c_str(), 0755) != 0) return base::os_error("chmod " + folder);
  if (!with_router) return {};
  for (const char* name : {"/airlock-stub", "/libairlock-preload.so"}) {
    if (auto copied = copy_program(programs + name, folder + name); !copied) return copied;
  }
  return {};
}

Result<bool> RuntimeDir::make_preload_file(const std::string& context) const {
  struct stat info {};
  if (::lstat("/etc/ld.so.preload", &info) != 0 || !S_ISREG(info.st_mode)) return false;
  auto others = base::read_file("/etc/ld.so.preload");
  if (!others) return tl::unexpected<base::Error>(others.error());
  const std::string path = view(context) + "/ld.so.preload";
  auto written = base::write_file(path, root_ + "/libairlock-preload.so\n" + *others, 0644);
  if (!written) return tl::unexpected<base::Error>(written.error());
  if (::chmod(path.c_str(), 0644) != 0) return base::os_error("chmod " + path);
  return true;
}

Result<void> RuntimeDir::add_shell(const std::string& context, const std::string& programs) const {
  for (const char* name : {"/airlock-shell", "/airlock-shell.so", "/airlock-shell-receiver.so"}) {
    auto copied = copy_program(programs + name, view(context) + name);
    // Without a library there is another way to run a shell, and it says so.
    const bool is_needed = std::string_view(name) == "/airlock-shell";
    if (!copied && (is_needed || copied.error().code != ENOENT)) return copied;
  }
  return {};
}

Result<void> RuntimeDir::add_file_tool(const std::string& context,
                                       const std::string& programs) const {
  const std::string tool = view(context) + "/airlock-files";
  if (::access(tool.c_str(), X_OK) == 0) return {};
  auto copied = copy_program(programs + "/airlock-files", tool);
  if (!copied) ::unlink(tool.c_str());  // the next one tries again
  return copied;
}

Result<void> RuntimeDir::make_home(const std::string& context, unsigned uid, unsigned gid) const {
  const std::string folder = home(context);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return base::os_error("mkdir " + folder);
  // Only root can give it away, and nobody else has programs of other users.
  if (::geteuid() == 0 && ::chown(folder.c_str(), uid, gid) != 0) {
    return base::os_error("chown " + folder);
  }
  return {};
}

Result<void> RuntimeDir::make_upper(const std::string& context) const {
  const std::string folder = upper(context);
  if (::mkdir(folder.c_str(), 0700) != 0) return base::os_error("mkdir " + folder);
  return {};
}

void RuntimeDir::remove_what_contexts_wrote() const {
  std::vector<std::string> found;  // first, because the remover's names are new ones to an iterator
  std::error_code ignored;
  for (const auto& folder : {uppers_, root_ + "/home"}) {
    for (const auto& each : std::filesystem::directory_iterator(folder, ignored)) {
      found.push_back(each.path().string());
    }
  }
  for (const auto& each : found) remover_->remove(each);
}

void RuntimeDir::remove(const std::string& context) const {
  std::error_code ignored;
  std::filesystem::remove_all(view(context), ignored);
  remover_->remove(home(context));
  remover_->remove(upper(context));
}

}  // namespace contexts
