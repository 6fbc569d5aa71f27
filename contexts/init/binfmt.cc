#include "contexts/init/binfmt.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "contexts/init/beside.h"
#include "contexts/init/binfmt_namespace.h"
#include "wire/seizing.h"

namespace contexts::init {
namespace {

using base::Result;

// ---- The process beside: what takes privileges of the outer user namespace, and what comes after
// the exec.

void assist(pid_t program, int socket, const void*) {
  if (wire::hear(socket) != 0) return;
  wire::tell(socket, map_ids_of(program));
  const base::UniqueFd status_file = wire::receive_fd(socket);
  if (!status_file) return;
  if (wire::seize(program, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL, socket) != 0) return;
  ::close(socket);
  enable_at_exec(program, status_file.borrow(), {});
}

// ---- This process.

Mark random_mark() {
  Mark mark{};
  while (std::all_of(mark.begin(), mark.end(), [](auto byte) { return byte == 0; })) {
    if (::getrandom(mark.data(), mark.size(), 0) != static_cast<ssize_t>(mark.size())) continue;
  }
  return mark;
}

/// A copy of the stub with `mark`, which may be executed and not be read, in the place of the stub.
Result<void> replace_stub(const std::string& stub, const Mark& mark) {
  auto content = base::read_file(stub);
  if (!content) return tl::unexpected<base::Error>(content.error());
  if (content->size() < sizeof(Elf64_Ehdr)) return base::failure(stub, ENOEXEC);
  std::memcpy(content->data() + wire::kMarkOffset, mark.data(), mark.size());
  if (auto made = mount_at("tmpfs", kBinfmtPlace, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
      !made) {
    return made;
  }
  const std::string copy = std::string(kBinfmtPlace) + "/airlock-stub";
  if (auto written = base::write_file(copy, *content, 0700); !written) return written;
  if (::chmod(copy.c_str(), 0111) != 0) return base::os_error("chmod " + copy);
  // Whoever cannot read a program cannot look into its process either, the router included if it
  // has no CAP_SYS_PTRACE; and then, in a root agent's reach, the file stays root's.
  if (::prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) == 1) (void)::chown(copy.c_str(), kNobody, kNobody);
  if (auto bound = mount_at(copy.c_str(), stub, nullptr, MS_BIND); !bound) return bound;
  constexpr unsigned long kFlags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (auto made = mount_at("none", stub, nullptr, kFlags); !made) return made;
  if (::umount2(kBinfmtPlace, MNT_DETACH) != 0) return base::os_error("unmount the tmpfs");
  return {};
}

/// Where /proc/sys is read-only: not for us. The program will have no capability for these.
Result<void> make_limits_writable() {
  if (auto bound = mount_at(kLimitsPlace, kLimitsPlace, nullptr, MS_BIND); !bound) return bound;
  constexpr unsigned long kFlags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return mount_at("none", kLimitsPlace, nullptr, kFlags);
}

// A child user namespace could have a binfmt_misc without these entries; and whoever may mount
// could look at this one.
Result<void> close_ways_out() {
  if (auto closed = allow_user_namespaces(0); !closed) return closed;
  for (const int capability : {CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_SYS_PTRACE, CAP_SYS_BOOT,
                               CAP_CHECKPOINT_RESTORE, CAP_BPF, CAP_PERFMON}) {
    (void)::prctl(PR_CAPBSET_DROP, capability);
  }
  return {};
}

Result<void> enter_user_namespace(int assistant) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return base::os_error("make a user namespace");
  wire::tell(assistant, 0);
  if (const int mapped = wire::hear(assistant); mapped != 0) {
    return base::failure("map the ids of a user namespace", -mapped);
  }
  return {};
}

}  // namespace

Result<void> enter_binfmt(const wire::Confinement& confinement) {
  const auto assistant = start_beside(assist, nullptr);
  if (!assistant) return base::os_error("start a process");
  const Mark mark = random_mark();
  const bool is_whole = has_id_0();
  const unsigned uid = ::geteuid();
  const unsigned gid = ::getegid();
  if (::unshare(CLONE_NEWNS) != 0) return base::os_error("make a mount namespace");
  auto done = mount_at("none", "/", nullptr, MS_REC | MS_PRIVATE);
  if (done) done = replace_stub(confinement.stub, mark);
  if (done) done = make_limits_writable();
  // While this process has non-dumpable memory its maps belong to root (proc(5)).
  ::prctl(PR_SET_DUMPABLE, 1);
  if (done) done = enter_user_namespace(assistant.borrow());
  if (!done) return done;
  auto status = register_entries(confinement.stub, mark);
  if (!status) return tl::unexpected<base::Error>(status.error());
  if (!is_whole) done = become_own_id_again(uid, gid);
  if (done) done = close_ways_out();
  if (!done) return done;
  wire::send_fd(assistant.borrow(), status->borrow());
  const long seized = wire::await_seized(assistant.borrow());
  ::prctl(PR_SET_DUMPABLE, 0);
  if (seized < 0) return base::failure("trace the program's first exec", static_cast<int>(-seized));
  return {};
}

std::string why_not_binfmt(const std::string& stub) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  const pid_t trial = ::fork();
  if (trial == 0) {
    wire::Confinement confinement;
    confinement.stub = stub;
    const auto entered = enter_binfmt(confinement);
    if (!entered) (void)base::write_all(writing.borrow(), entered.error().message());
    _exit(0);
  }
  writing.reset();
  if (trial < 0) return "no process";
  auto why = base::read_all(reading.borrow());
  ::waitpid(trial, nullptr, 0);
  return why ? *why : why.error().message();
}

}  // namespace contexts::init
