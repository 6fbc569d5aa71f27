#include "contexts/init/domain.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unique_fd.h"

namespace contexts::init {
namespace {

using base::Result;

// struct landlock_ruleset_attr of Linux 6.12; Debian 12's header ends after the first field.
struct RulesetAttributes {
  std::uint64_t file_access;
  std::uint64_t net_access;
  std::uint64_t scoped;
};
constexpr std::uint64_t kScopeAbstractSocket = 1;  // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
constexpr std::uint64_t kScopeSignal = 2;          // LANDLOCK_SCOPE_SIGNAL

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE;
// LANDLOCK_ACCESS_FS_TRUNCATE, Linux 6.2.
constexpr std::uint64_t kFileRights = kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE | 1u << 14;
// Cross-folder renames are refused by every ruleset that has not this (Linux 5.19).
constexpr std::uint64_t kAllRights =
    kFileRights | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

bool is_at_or_below(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

/// The rules of one ruleset: everything but what is closed.
class OpenRest {
 public:
  OpenRest(int ruleset, const Domain& domain) : ruleset_(ruleset), domain_(domain) {}

  Result<void> run() {
    auto done = open_below("/");
    for (const auto& opening : domain_.openings) {
      if (done) done = allow(opening.path, opening.read_only ? kReadFile : kAllRights);
    }
    return done;
  }

 private:
  bool is_closed(const std::string& path) const {
    for (const auto& closed : domain_.closed) {
      if (path == closed) return true;
    }
    return false;
  }

  bool has_closed_below(const std::string& path) const {
    for (const auto& closed : domain_.closed) {
      if (path != closed && is_at_or_below(closed, path)) return true;
    }
    return false;
  }

  // A rule opens all that is below its folder, so the way to a closed one has none.
  Result<void> open_below(const std::string& path) {
    if (is_closed(path)) return {};
    if (!has_closed_below(path)) return allow(path, kAllRights);
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return base::os_error("list " + path);
    Result<void> done;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      done = open_below((path == "/" ? "" : path) + "/" + name);
      if (!done) break;
    }
    ::closedir(folder);
    return done;
  }

  Result<void> allow(const std::string& path, std::uint64_t rights) {
    const base::UniqueFd target(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    // What is gone, or a link, needs no rule: links lead to what has its own.
    if (!target || ::fstat(target.borrow(), &info) != 0 || S_ISLNK(info.st_mode)) return {};
    if (!S_ISDIR(info.st_mode)) rights &= kFileRights;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rights;
    rule.parent_fd = target.borrow();
    if (::syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      return base::os_error("open " + path + " in a Landlock domain");
    }
    return {};
  }

  int ruleset_;
  const Domain& domain_;
};

}  // namespace

int landlock_abi() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

Result<void> enter(const Domain& domain) {
  RulesetAttributes attributes{};
  if (!domain.closed.empty()) attributes.file_access = kAllRights;
  if (domain.scope_signals) attributes.scoped |= kScopeSignal;
  if (domain.scope_sockets) attributes.scoped |= kScopeAbstractSocket;
  const base::UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!ruleset) return base::os_error("create a Landlock ruleset");
  if (!domain.closed.empty()) {
    if (auto opened = OpenRest(ruleset.borrow(), domain).run(); !opened) return opened;
  }
  if (domain.no_new_privs) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_landlock_restrict_self, ruleset.borrow(), 0) != 0) {
    return base::os_error("enter a Landlock domain");
  }
  return {};
}

}  // namespace contexts::init
