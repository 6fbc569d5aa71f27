#include "contexts/init/binfmt_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"

namespace contexts::init {
namespace {

using base::Result;

Result<void> write_to(const std::string& path, std::string_view text) {
  auto file = base::open_file(path, O_WRONLY);
  if (!file) return tl::unexpected<base::Error>(file.error());
  if (::write(file->borrow(), text.data(), text.size()) < 0) return base::os_error("write " + path);
  return {};
}

/// Every id as it is. Of a whole id space one is left out, for kNobody.
std::string identity_map(const char* outer_map) {
  const auto lines = base::read_file(outer_map);
  std::string map;
  for (const char* at = lines ? lines->c_str() : ""; *at != '\0';) {
    char* end = nullptr;
    const unsigned long first = std::strtoul(at, &end, 10);
    (void)std::strtoul(end, &end, 10);
    unsigned long count = std::strtoul(end, &end, 10);
    if (end == at) break;
    at = *end == '\n' ? end + 1 : end;
    if (first <= kNobody && first + count > kNobody) count = kNobody - first;
    const std::string id = std::to_string(first);
    map += id + " " + id + " " + std::to_string(count) + "\n";
  }
  return map;
}

std::string line(unsigned inside, unsigned outside) {
  return std::to_string(inside) + " " + std::to_string(outside) + " 1";
}

bool is_file(pid_t program, FileOnDisk wanted) {
  const auto running = file_of(program);
  return running.inode != 0 && running.inode == wanted.inode && running.device == wanted.device;
}

}  // namespace

Result<void> mount_at(const char* source, const std::string& target, const char* type,
                      unsigned long flags, const char* options) {
  if (::mount(source, target.c_str(), type, flags, options) == 0) return {};
  return base::os_error(std::string("mount ") + (type != nullptr ? type : source) + " on " +
                        target);
}

bool has_id_0() {
  const std::string map = identity_map("/proc/self/uid_map");
  return map.starts_with("0 ") || map.find("\n0 ") != std::string::npos;
}

int map_ids_of(pid_t program) {
  const std::string process = "/proc/" + std::to_string(program);
  const bool is_whole = has_id_0();
  auto done = write_to(process + "/uid_map",
                       is_whole ? identity_map("/proc/self/uid_map") : line(0, ::geteuid()));
  if (done) {
    done = write_to(process + "/gid_map",
                    is_whole ? identity_map("/proc/self/gid_map") : line(0, ::getegid()));
  }
  return done ? 0 : -done.error().code;
}

Result<base::UniqueFd> register_entries(const std::string& stub, const Mark& mark) {
  auto done =
      mount_at("binfmt_misc", kBinfmtPlace, "binfmt_misc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  if (!done) {
    done.error().detail = "a binfmt_misc of a user namespace's own needs Linux 6.7";
    return tl::unexpected<base::Error>(done.error());
  }
  const std::string folder = kBinfmtPlace;
  auto status = base::open_file(folder + "/status", O_WRONLY);
  if (!status) return tl::unexpected<base::Error>(status.error());
  if (::write(status->borrow(), "0", 1) != 1) return base::os_error("write " + folder + "/status");
  auto file = base::open_file(folder + "/register", O_WRONLY);
  if (!file) return tl::unexpected<base::Error>(file.error());
  for (const auto& entry : binfmt_entries(mark, stub)) {
    if (::write(file->borrow(), entry.data(), entry.size()) < 0) {
      return base::os_error("register a binfmt_misc entry");
    }
  }
  done = mount_at("tmpfs", kBinfmtPlace, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV,
                  "size=4k,mode=0555");
  if (!done) return tl::unexpected<base::Error>(done.error());
  return std::move(*status);
}

Result<void> become_own_id_again(unsigned uid, unsigned gid) {
  if (::unshare(CLONE_NEWUSER) != 0) return base::os_error("make a second user namespace");
  auto done = write_to("/proc/self/setgroups", "deny");
  if (done) done = write_to("/proc/self/uid_map", line(uid, 0));
  if (done) done = write_to("/proc/self/gid_map", line(gid, 0));
  return done;
}

Result<void> allow_user_namespaces(unsigned count) {
  return write_to(std::string(kLimitsPlace) + "/max_user_namespaces", std::to_string(count));
}

FileOnDisk file_of(pid_t program) {
  struct stat info {};
  const std::string link = "/proc/" + std::to_string(program) + "/exe";
  if (::stat(link.c_str(), &info) != 0) return {};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
}

void enable_at_exec(pid_t program, int status_file, std::optional<FileOnDisk> wanted) {
  for (;;) {
    int status = 0;
    const pid_t got = ::waitpid(program, &status, __WALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !WIFSTOPPED(status)) return;  // it has ended
    const int event = status >> 16;
    if (event == PTRACE_EVENT_EXEC) {
      const bool is_wanted = !wanted || is_file(program, *wanted);
      if (!is_wanted || ::write(status_file, "1", 1) != 1) ::kill(program, SIGKILL);
      ::syscall(SYS_ptrace, PTRACE_DETACH, program, 0, 0);
      return;
    }
    const bool is_group_stop = event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
    const long signal = event == 0 ? WSTOPSIG(status) : 0;
    ::syscall(SYS_ptrace, is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, program, 0, signal);
  }
}

}  // namespace contexts::init
