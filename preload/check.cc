// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/check.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "preload/access.h"
#include "preload/content.h"
#include "preload/raw.h"

namespace preload {
namespace {

/// "#!" files that may follow one another before Linux says ELOOP: fs/exec.c, exec_binprm.
constexpr int kMaxScripts = 5;

bool is_registration(const char* name) {
  return name[0] != '.' && strcmp(name, "register") != 0 && strcmp(name, "status") != 0;
}

/// A file of no format the kernel itself has may still run if binfmt_misc has any entry; which
/// file matches which entry is the kernel's business.
[[gnu::noinline]] bool other_formats_registered() {
  const long fd = raw::open("/proc/sys/fs/binfmt_misc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(dirent64) char buffer[512] = {};
  bool found = false;
  long filled;
  while (!found && (filled = raw::getdents(static_cast<int>(fd), buffer, sizeof(buffer))) > 0) {
    for (long at = 0; at < filled && !found;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      found = is_registration(entry->d_name);
      at += entry->d_reclen;
    }
  }
  raw::close(static_cast<int>(fd));
  return found;
}

/// A missing ld.so (a musl program on a glibc system) is ENOENT for the program.
int check_elf_interpreter(int fd, const Head& head, char (&name)[kHeadBytes]) {
  const Extent extent = elf_interpreter(head);
  if (extent.size < 2 || extent.size > sizeof(name)) return 0;
  const long got = raw::pread(fd, name, extent.size, static_cast<long>(extent.offset));
  if (got != static_cast<long>(extent.size) || name[got - 1] != '\0') return ENOEXEC;
  return check_access(name);
}

/// Looks into the file at `fd`. 0: it runs, EAGAIN: it is a script and `interpreter` names what
/// must be checked next, else an errno. Unreadable content is for the kernel alone: accepted.
int check_content(int fd, char (&interpreter)[kHeadBytes]) {
  Head head = {};
  struct stat status = {};
  if (raw::read(fd, head.bytes, sizeof(head.bytes)) < 0) return 0;
  if (raw::stat_at(fd, "", &status, AT_EMPTY_PATH) < 0) return 0;
  switch (classify(head, static_cast<unsigned long>(status.st_size), interpreter)) {
    case Content::program:
      return check_elf_interpreter(fd, head, interpreter);
    case Content::script:
      return EAGAIN;
    case Content::unknown:
      return other_formats_registered() ? 0 : ENOEXEC;
  }
  return ENOEXEC;
}

}  // namespace

int check_program(const char* path, CheckOptions options) {
  char interpreter[kHeadBytes];
  for (int scripts = 0;; ++scripts) {
    if (const int error = check_access(path)) return error;
    if (scripts > kMaxScripts) return ELOOP;
    // Not blocking, in case the regular file of a moment ago has become a FIFO. --x opens not.
    const long fd = raw::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return 0;
    const int error = check_content(static_cast<int>(fd), interpreter);
    raw::close(static_cast<int>(fd));
    if (error != EAGAIN) return error;
    if (options.hidden_from_interpreter && scripts == 0) return ENOENT;
    if (interpreter[0] == '\0') return EACCES;  // Linux opens the current directory then
    if (options.cwd_unknown && interpreter[0] != '/') return 0;
    path = interpreter;
  }
}

}  // namespace preload
