#include "contexts/init/confine.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "contexts/init/domain.h"
#include "contexts/init/syscall_filter.h"
#include "contexts/tier.h"

namespace contexts::init {
namespace {

using base::Result;

constexpr std::size_t kMaxSharedFile = 4 << 20;

std::string resolved(const std::string& path) {
  char result[PATH_MAX];
  return ::realpath(path.c_str(), result) != nullptr ? result : "";
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// True if everybody may make files in a folder above `path`: then the rules cannot leave the path
/// out without taking that away.
bool is_below_common_folder(const std::string& path) {
  for (std::string folder = parent_of(path); folder != "/"; folder = parent_of(folder)) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0) return true;
  }
  return false;
}

void close_path(Domain& domain, const std::string& path, const char* what,
                wire::StringList& lacks) {
  const std::string real = resolved(path);
  if (real.empty() || real == "/") return;
  if (is_below_common_folder(real)) {
    lacks.add(std::string(what) + " " + real +
              " is open to its programs as far as file modes allow: it lies below a folder that "
              "everybody may write in");
    return;
  }
  domain.closed.push_back(real);
}

void open_path(Domain& domain, const std::string& path, bool read_only = false) {
  if (auto real = resolved(path); !real.empty()) {
    domain.openings.push_back({std::move(real), read_only});
  }
}

/// Closes what mounts would cover: the platform's HOME, hidden folders and the runtime folder.
Domain inner_domain(const wire::Setup& setup, wire::StringList& lacks) {
  Domain domain;
  domain.scope_sockets = !setup.is_platform;
  domain.scope_signals = true;
  if (setup.is_platform) return domain;
  for (const auto path : setup.hide.views()) {
    close_path(domain, std::string(path), "hidden folder", lacks);
  }
  for (const auto path : setup.protect.views()) {
    close_path(domain, std::string(path), "protected path", lacks);
    open_path(domain, std::string(path), true);
  }
  close_path(domain, setup.runtime_dir, "runtime folder", lacks);
  open_path(domain, setup.view_dir, true);
  if (setup.private_home.empty()) return domain;
  close_path(domain, setup.home, "HOME", lacks);
  open_path(domain, setup.private_home);
  for (const auto path : setup.share.views()) open_path(domain, std::string(path));
  return domain;
}

Result<void> make_folders(const std::string& root, const std::string& relative,
                          const struct stat& owner) {
  for (std::size_t at = relative.find('/'); at != std::string::npos;
       at = relative.find('/', at + 1)) {
    const std::string folder = root + "/" + relative.substr(0, at);
    if (::mkdir(folder.c_str(), 0700) == 0) {
      (void)::lchown(folder.c_str(), owner.st_uid, owner.st_gid);
    } else if (errno != EEXIST) {
      return base::os_error("mkdir " + folder);
    }
  }
  return {};
}

/// As mounts.cc does it, but a folder is a link to the platform's.
Result<void> share_one(const wire::Setup& setup, const std::string& path, const struct stat& owner,
                       wire::StringList& lacks) {
  const std::string relative = path.substr(setup.home.size() + 1);
  const std::string target = setup.private_home + "/" + relative;
  if (auto made = make_folders(setup.private_home, relative, owner); !made) return made;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode)) {
    if (::symlink(path.c_str(), target.c_str()) != 0 && errno != EEXIST) {
      return base::os_error("symlink " + target);
    }
  } else {
    auto content = base::read_file(path, kMaxSharedFile);
    if (!content) {
      lacks.add("not shared: " + content.error().message());
      return {};
    }
    if (auto written = base::write_file(target, *content, 0600); !written) return written;
  }
  (void)::lchown(target.c_str(), owner.st_uid, owner.st_gid);
  return {};
}

Result<void> fill_home(const wire::Setup& setup, wire::StringList& lacks) {
  struct stat owner {};
  if (setup.private_home.empty()) return {};
  if (::stat(setup.private_home.c_str(), &owner) != 0) {
    return base::os_error("HOME " + setup.private_home);
  }
  for (const auto& path : setup.share.strings()) {
    if (!path.starts_with(setup.home + "/")) continue;
    if (auto shared = share_one(setup, path, owner, lacks); !shared) return shared;
  }
  return {};
}

bool has_own_uid(const wire::Setup& setup) { return setup.own_uid != wire::kNoId; }

/// Does `attempt` in a child, which ends with its errno: what fails must fail before the context is
/// said to stand, and this process must stay who it is.
template <class Attempt>
int try_in_child(const Attempt& attempt) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) _exit(attempt());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

Result<void> try_own_uid(std::uint32_t uid) {
  const int error = try_in_child([uid] {
    return ::setresgid(uid, uid, uid) == 0 && ::setresuid(uid, uid, uid) == 0 ? 0 : errno;
  });
  if (error == 0) return {};
  return base::failure("become uid " + std::to_string(uid), error,
                       "root with CAP_SETUID and CAP_SETGID is needed, and as many mapped ids");
}

/// This process is in a domain of its own: its kill(-1) ends at the domain's border.
bool is_scoped = false;

Result<void> enter_outer_domain(const wire::Setup& setup) {
  Domain domain;
  domain.scope_signals = true;
  domain.scope_sockets = !setup.is_platform;
  if (auto entered = enter(domain); !entered) return entered;
  // Everything rests on this; routerd, our parent, is the one who must not be reached any more.
  if (::kill(::getppid(), 0) == 0) return base::failure("scope signals by Landlock", ENOTSUP);
  is_scoped = true;
  return {};
}

Result<void> try_inner_domain(const Domain& domain) {
  const int error = try_in_child([&domain] {
    auto entered = enter(domain);
    return entered ? 0 : entered.error().code;
  });
  if (error == 0) return {};
  return base::failure("enter a Landlock domain with file rules", error);
}

/// kill(2) of everything with one user id. The killer has that one only as its effective id, which
/// is not what a signal's target is judged by: so its victims cannot kill it first.
void kill_all_of(std::uint32_t uid) {
  for (int tries = 0; tries < 100; ++tries) {
    const pid_t killer = ::fork();
    if (killer == 0) {
      const std::uint32_t nobody = kKillerUid;
      if (::setresuid(nobody, uid, nobody) != 0) _exit(1);
      ::kill(-1, SIGKILL);
      _exit(0);
    }
    int status = 0;
    if (killer < 0 || ::waitpid(killer, &status, 0) != killer || WIFEXITED(status)) return;
  }
}

/// Without a domain and without a user id: the children, and as they come to us as their subreaper
/// (prctl(2)) the orphans of each. A process that forks faster than this looks escapes.
void kill_descendants() {
  for (;;) {
    auto children = base::read_file("/proc/thread-self/children");
    if (!children) return;
    for (char* at = children->data(); *at != '\0';) {
      char* end = at;
      const long pid = std::strtol(at, &end, 10);
      if (end == at) break;
      ::kill(static_cast<pid_t>(pid), SIGKILL);
      at = end;
    }
    if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
  }
}

}  // namespace

Result<void> confine_init(const wire::Setup& setup, wire::StringList& lacks) {
  const auto tier = static_cast<Tier>(setup.tier);
  const bool can_scope = landlock_abi() >= kScopedAbi;
  if (tier == Tier::none) return {};
  if (is_isolated(tier)) {
    if (setup.is_platform) return {};
    if (can_scope) return enter({.scope_sockets = true, .no_new_privs = false});
    lacks.add(
        "abstract sockets of others can be reached: no Landlock that scopes them (Linux 6.12)");
    return {};
  }
  if (has_own_uid(setup)) {
    if (auto tried = try_own_uid(setup.own_uid); !tried) return tried;
  }
  if (auto filled = fill_home(setup, lacks); !filled) return filled;
  if (can_scope) {
    auto tried = try_inner_domain(inner_domain(setup, lacks));
    return tried ? enter_outer_domain(setup) : tried;
  }
  if (tier == Tier::uids && has_own_uid(setup)) {
    lacks.add(
        "abstract sockets of others, and files that their mode opens to everybody, can be reached: "
        "no Landlock that scopes them (Linux 6.12)");
    return {};
  }
  if (tier == Tier::uids && setup.is_platform) {
    lacks.add("its end is not sure: no Landlock that scopes signals (Linux 6.12)");
    return {};
  }
  return base::failure(
      "scope signals by Landlock", ENOTSUP,
      "Linux 6.12 with Landlock on is needed, and a seccomp profile that allows it");
}

Result<void> confine_spawner(const wire::Setup& setup) {
  wire::StringList known;
  if (is_scoped) {
    if (auto entered = enter(inner_domain(setup, known)); !entered) return entered;
  }
  if (setup.no_new_privs) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (setup.refused_calls == 0) return {};
  return enter(setup.refused_calls == 1 ? SyscallFilter::secure : SyscallFilter::strict);
}

void kill_members(const wire::Setup& setup) {
  if (is_scoped || is_isolated(static_cast<Tier>(setup.tier))) {
    ::kill(-1, SIGKILL);
  } else {
    if (has_own_uid(setup)) kill_all_of(setup.own_uid);
    kill_descendants();
  }
}

}  // namespace contexts::init
