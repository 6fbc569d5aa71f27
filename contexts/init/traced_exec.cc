#include "contexts/init/traced_exec.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "contexts/init/tracee_memory.h"

namespace contexts::init {

FileId file_id(const char* path) {
  struct stat info {};
  if (::stat(path, &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

namespace {

using Fate = TracedExec::Fate;

/// The arguments of either system call.
struct Call {
  int folder = AT_FDCWD;
  std::string path;
  int flags = 0;
};

std::optional<Call> read_call(pid_t tracee, const Registers& registers) {
  const bool is_at = registers.number() == SYS_execveat;
  Call call;
  if (is_at) {
    call.folder = static_cast<int>(registers.argument(0));
    call.flags = static_cast<int>(registers.argument(4));
  }
  if (!read_string(tracee, registers.argument(is_at ? 1 : 0), PATH_MAX, call.path)) return {};
  return call;
}

std::string fd_link(const std::string& process, int fd) {
  return process + "/fd/" + std::to_string(fd);
}

/// The rest of `path` behind `prefix`, where several slashes count as one; nullopt if it does not
/// begin so.
std::optional<std::string_view> behind(std::string_view path, std::string_view prefix) {
  for (const char wanted : prefix) {
    if (path.empty() || path.front() != wanted) return {};
    path.remove_prefix(1);
    while (wanted == '/' && !path.empty() && path.front() == '/') path.remove_prefix(1);
  }
  return path;
}

/// `path` as another process must say it to mean what `tracee` means; paths through /proc/self and
/// /dev are the tracee's own.
std::string as_seen_from_here(pid_t tracee, const std::string& process, const Call& call) {
  const std::string& path = call.path;
  if (path.empty()) return fd_link(process, call.folder);
  if (path.front() != '/') {
    return (call.folder == AT_FDCWD ? process + "/cwd" : fd_link(process, call.folder)) + "/" +
           path;
  }
  if (const auto rest = behind(path, "/proc/self/")) return process + "/" + std::string(*rest);
  if (const auto rest = behind(path, "/proc/thread-self/")) {
    return "/proc/" + std::to_string(tracee) + "/" + std::string(*rest);
  }
  if (const auto rest = behind(path, "/dev/fd/")) return process + "/fd/" + std::string(*rest);
  if (path == "/dev/stdin") return fd_link(process, 0);
  if (path == "/dev/stdout") return fd_link(process, 1);
  if (path == "/dev/stderr") return fd_link(process, 2);
  return path;
}

bool leads_through_process(const std::string& path) {
  return behind(path, "/proc/") || behind(path, "/dev/fd/") || behind(path, "/dev/std");
}

/// A file of no format the kernel has itself may still run if binfmt_misc has entries.
bool has_other_formats() {
  DIR* folder = ::opendir("/proc/sys/fs/binfmt_misc");
  if (folder == nullptr) return false;
  int entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  constexpr int kAlways = 4;  // . .. register status
  return entries > kAlways;
}

/// Only for the plain cases; where in doubt it is executable, and the stub finds out.
bool is_executable(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  constexpr int kExecutable = 1;
  if (::syscall(SYS_faccessat2, file, "", kExecutable, AT_EMPTY_PATH | AT_EACCESS) != 0 &&
      errno == EACCES) {
    return false;
  }
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const auto readable = base::open_file(link, O_RDONLY | O_NONBLOCK);
  char head[4] = {};
  if (!readable || ::pread(readable->borrow(), head, sizeof head, 0) < 0) return true;
  const bool is_known = std::memcmp(head, ELFMAG, SELFMAG) == 0 || std::memcmp(head, "#!", 2) == 0;
  return is_known || has_other_formats();
}

bool is_close_on_exec(const std::string& process, int fd) {
  const auto info = base::read_file(process + "/fdinfo/" + std::to_string(fd));
  const auto at = info ? info->find("flags:") : std::string::npos;
  if (at == std::string::npos) return true;
  return (std::strtoul(info->c_str() + at + 6, nullptr, 8) & O_CLOEXEC) != 0;
}

/// The descriptor a path like /proc/self/fd/5 names, or the one of an empty path; -1 for others.
int named_fd(const Call& call) {
  if (call.path.empty()) return call.folder;
  for (const char* folder : {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"}) {
    const auto rest = behind(call.path, folder);
    if (!rest || rest->empty()) continue;
    if (rest->find_first_not_of("0123456789") != std::string_view::npos || rest->size() > 9)
      continue;
    return std::atoi(std::string(*rest).c_str());
  }
  return -1;
}

/// The path of what is open at `file`, if it still leads there.
std::string path_of(int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  auto path = base::read_link(link);
  if (!path || path->front() != '/') return {};
  const FileId named = file_id(path->c_str());
  return named.inode != 0 && named == file_id(link.c_str()) ? *path : std::string();
}

std::string name_for_stub(const std::string& process, const Call& call, int file) {
  const bool means_the_same = !call.path.empty() && !leads_through_process(call.path) &&
                              (call.path.front() == '/' || call.folder == AT_FDCWD);
  if (means_the_same) return call.path;
  if (auto path = path_of(file); !path.empty()) return path;
  const int fd = named_fd(call);
  if (fd < 0 || is_close_on_exec(process, fd)) return {};
  return fd_link("/proc/self", fd);
}

}  // namespace

TracedExec look_at_exec(pid_t tracee, const Registers& registers, const FileId& stub) {
  // The main thread's number is not known here, and a thread has all that is asked for.
  const std::string process = "/proc/" + std::to_string(tracee);
  const auto call = read_call(tracee, registers);
  if (!call) return {};
  constexpr int kCheckOnly = 0x10000;  // AT_EXECVE_CHECK, Linux 6.14: nothing is exec'ed
  if ((call->flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0) return {};
  if (call->path.empty() && (call->flags & AT_EMPTY_PATH) == 0) return {};
  static_assert((kCheckOnly & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) == 0);
  if (!(file_id((process + "/root").c_str()) == file_id("/"))) return {Fate::unnameable, {}};
  const int follow =
      (call->flags & AT_SYMLINK_NOFOLLOW) != 0 && !call->path.empty() ? O_NOFOLLOW : 0;
  const auto file = base::open_file(as_seen_from_here(tracee, process, *call), O_PATH | follow);
  if (!file) return {};
  const std::string link = "/proc/self/fd/" + std::to_string(file->borrow());
  if (file_id(link.c_str()) == stub) return {Fate::stub, {}};
  if (!is_executable(file->borrow())) return {};
  std::string target = name_for_stub(process, *call, file->borrow());
  if (target.empty()) return {Fate::unnameable, {}};
  return {Fate::runs, std::move(target)};
}

}  // namespace contexts::init
