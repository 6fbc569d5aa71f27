#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace base {

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) return os_error("open " + path);
  return fd;
}

Result<std::string> read_all(int fd, std::size_t limit) {
  std::string content;
  char block[16384];
  for (;;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read");
    if (n == 0) return content;
    if (content.size() + static_cast<std::size_t>(n) > limit) return failure("read", EFBIG);
    content.append(block, static_cast<std::size_t>(n));
  }
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  auto content = read_all(fd->borrow(), limit);
  if (!content) return failure("read " + path, content.error().code);
  return content;
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode) {
  auto fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (!fd) return tl::unexpected<Error>(fd.error());
  auto written = write_all(fd->borrow(), bytes);
  if (!written) return failure("write " + path, written.error().code);
  return {};
}

Result<std::string> read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
  if (n < 0) return os_error("readlink " + path);
  return std::string(target, static_cast<std::size_t>(n));
}

Result<UniqueFd> duplicate(int fd) {
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return os_error("duplicate descriptor");
  return copy;
}

Result<void> set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return os_error("fcntl F_GETFL");
  const int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) < 0) return os_error("fcntl F_SETFL");
  return {};
}

namespace {

// getdents64(2)'s record; neither libc exports it.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

std::vector<int> fds_below(int end) {
  std::vector<int> fds;
  for (int fd = 0; fd < end; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) fds.push_back(fd);
  }
  return fds;
}

std::vector<int> probe_fds() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return fds_below(static_cast<int>(limit.rlim_cur < 65536 ? limit.rlim_cur : 65536));
}

void insert_ascending(std::vector<int>& fds, int fd) {
  auto place = fds.end();
  while (place != fds.begin() && *(place - 1) > fd) --place;
  fds.insert(place, fd);
}

// select(2) cuts its descriptor count down to the size of the process's descriptor table
// (core_sys_select, fs/select.c), does not touch the sets beyond it, and answers EBADF for a closed
// descriptor. So if sets with all numbers from `end` on come back untouched, none of them can be
// open: one system call, where a look into /proc/self/fd makes the kernel build a directory entry
// per descriptor for a process that lives for a millisecond.
bool is_table_below(int end) {
  fd_set asked;
  std::memset(&asked, 0xff, sizeof asked);
  for (int fd = 0; fd < end; ++fd) FD_CLR(fd, &asked);
  fd_set answer = asked;
  timeval at_once{0, 0};
  return ::select(FD_SETSIZE, nullptr, nullptr, &answer, &at_once) == 0 &&
         std::memcmp(&answer, &asked, sizeof asked) == 0;
}

}  // namespace

std::vector<int> open_fds() {
  // Sizes a table has (alloc_fdtable, fs/file.c); asking 256 numbers still beats the look into
  // /proc.
  for (const int size : {64, 256}) {
    if (is_table_below(size)) return fds_below(size);
  }
  const UniqueFd folder(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return probe_fds();
  std::vector<int> fds;
  alignas(DirectoryEntry) char block[4096];
  for (;;) {
    const long n = ::syscall(SYS_getdents64, folder.borrow(), block, sizeof block);
    if (n <= 0) break;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(block + at);
      at += entry->length;
      if (entry->name[0] < '0' || entry->name[0] > '9') continue;
      int fd = 0;
      for (const char* digit = entry->name; *digit != '\0'; ++digit) fd = fd * 10 + (*digit - '0');
      if (fd != folder.borrow()) insert_ascending(fds, fd);
    }
  }
  return fds;
}

}  // namespace base
