#include "contexts/uid_lease.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "base/file.h"
#include "contexts/tier.h"

namespace contexts {

using base::Result;

namespace {

/// Calls `look` with the /proc/PID/status of every process.
void for_each_status(const std::function<void(const std::string&)>& look) {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = ::readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    auto status = base::read_file(std::string("/proc/") + entry->d_name + "/status");
    if (status) look(*status);
  }
  ::closedir(proc);
}

/// Real and saved user ids (proc(5): "Uid: real effective saved filesystem").
std::pair<uid_t, uid_t> uids_of(const std::string& status) {
  const auto line = status.find("\nUid:");
  if (line == std::string::npos) return {0, 0};
  char* at = nullptr;
  const auto real = std::strtoul(status.c_str() + line + 5, &at, 10);
  (void)std::strtoul(at, &at, 10);
  return {static_cast<uid_t>(real), static_cast<uid_t>(std::strtoul(at, nullptr, 10))};
}

std::set<uid_t> uids_in_use() {
  std::set<uid_t> used;
  for_each_status([&used](const std::string& status) {
    const auto [real, saved] = uids_of(status);
    used.insert(real);
    used.insert(saved);
  });
  return used;
}

/// The file whose bytes are locked, one per id. Not in a runtime folder: all daemons share it.
Result<base::UniqueFd> open_lock_file() {
  Result<base::UniqueFd> file;
  for (const char* path : {"/run/airlock-uids.lock", "/tmp/airlock-uids.lock"}) {
    file = base::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    struct stat info {};
    if (file && ::fstat(file->borrow(), &info) == 0 && info.st_uid == 0) return file;
    if (file) file = base::failure(std::string("lock ") + path, EPERM, "it is not root's");
  }
  return file;
}

bool try_lock(int file, uid_t uid) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = uid;
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

Result<UidLease> UidLease::take(std::string_view context) {
  if (::geteuid() != 0) {
    return base::failure("take a user id", EPERM, "root with CAP_SETUID and CAP_SETGID is needed");
  }
  auto file = open_lock_file();
  if (!file) return tl::unexpected<base::Error>(file.error());
  const auto used = uids_in_use();
  constexpr std::uint32_t kCount = kLastOwnUid - kFirstOwnUid + 1;
  std::uint32_t hash = 2166136261;  // FNV-1a: std::hash may differ from build to build
  for (const char c : context) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const uid_t uid = kFirstOwnUid + (hash + i) % kCount;
    if (used.contains(uid) || ::getpwuid(uid) != nullptr) continue;
    if (try_lock(file->borrow(), uid)) return UidLease(std::move(*file), uid);
  }
  return base::failure("take a user id", EAGAIN,
                       "all from " + std::to_string(kFirstOwnUid) + " to " +
                           std::to_string(kLastOwnUid) + " are in use");
}

std::uint32_t UidLease::first_of_block() const {
  constexpr std::uint32_t kFirst = 0x70000000;  // systemd's for containers end before
  return kFirst + (uid_ - kFirstOwnUid) * 65536;
}

int count_processes_of(uid_t uid) {
  int count = 0;
  for_each_status([uid, &count](const std::string& status) {
    const bool is_zombie = status.find("\nState:\tZ") != std::string::npos;
    count += !is_zombie && uids_of(status).first == uid;
  });
  return count;
}

}  // namespace contexts
