#include "routerd/fd_rules.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <array>
#include <string_view>

#include "base/file.h"

namespace routerd {
namespace {

constexpr long kPidFsMagic = 0x50494446;  // PID_FS_MAGIC, include/uapi/linux/magic.h of Linux 6.9

std::string refusal_of_file(int fd) {
  struct statfs filesystem {};
  if (::fstatfs(fd, &filesystem) != 0) return {};
  switch (filesystem.f_type) {
    case PROC_SUPER_MAGIC:
      return "a procfs file";
    case NSFS_MAGIC:
      return "a namespace";
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
      return "a cgroup file";
    case kPidFsMagic:
      return "a pidfd";
    default:
      return {};
  }
}

std::string refusal_of_anonymous(int fd) {
  const auto link = base::read_link("/proc/self/fd/" + std::to_string(fd));
  if (!link) return {};
  constexpr std::array<std::string_view, 8> kRefused = {
      "[eventpoll]",  "[pidfd]",       "[io_uring]", "bpf-",
      "[perf_event]", "[userfaultfd]", "[landlock",  "[fscontext]"};
  for (const auto kind : kRefused) {
    if (link->find(kind) != std::string::npos) return *link;
  }
  return {};
}

}  // namespace

std::string refusal_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return "unreadable";
  if (S_ISDIR(info.st_mode)) return "a folder";
  if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) return refusal_of_file(fd);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_PATH) != 0) return "a path to no file";
  if ((info.st_mode & S_IFMT) == 0) return refusal_of_anonymous(fd);
  if (!S_ISSOCK(info.st_mode)) return {};
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size);
  return is_listening != 0 ? "a listening socket" : "";
}

std::vector<std::string> filter_fds(wire::ExecRequest& request, std::vector<base::UniqueFd>& fds,
                                    bool stdio_only) {
  std::vector<std::string> refused;
  std::vector<base::UniqueFd> kept;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const std::uint32_t number = request.fd_numbers[i];
    std::string reason = refusal_of(fds[i].borrow());
    if (reason.empty() && stdio_only && number > 2) reason = "fds: stdio";
    if (!reason.empty()) refused.push_back(std::to_string(number) + ": " + reason);
    if (!reason.empty() && number > 2) continue;
    if (!reason.empty()) fds[i].reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    numbers.push_back(number);
    kept.push_back(std::move(fds[i]));
  }
  request.fd_numbers = std::move(numbers);
  fds = std::move(kept);
  return refused;
}

}  // namespace routerd
