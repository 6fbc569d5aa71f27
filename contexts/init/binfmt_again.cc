#include "contexts/init/binfmt_again.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "contexts/init/beside.h"
#include "contexts/init/binfmt_namespace.h"
#include "wire/requester.h"
#include "wire/seizing.h"

namespace contexts::init {
namespace {

using base::Result;
using base::UniqueFd;

constexpr const char* kLimit = "/proc/sys/user/max_user_namespaces";

/// Enough for the moment in which one is made.
constexpr std::string_view kMany = "65536";

/// The limit of a user namespace is lifted for a moment, by one process of this context at a time:
/// a file for locks of fcntl(2), which end with their process.
int gate_file() {
  static const UniqueFd file(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  return file.borrow();
}

int lock(int file, short type) {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLKW, &whole);
}

struct Ends {
  UniqueFd ours;
  UniqueFd theirs;
};

Ends socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// ---- The maker: lives in the new namespaces until it has handed them over.

UniqueFd own_namespace(const char* name) {
  return UniqueFd(::open((std::string("/proc/self/ns/") + name).c_str(), O_RDONLY | O_CLOEXEC));
}

/// Where id 0 stands for the stub's: a user namespace below, in which that is itself again. Nobody
/// stays in it; the entries of this one count there, too.
UniqueFd namespace_of_own_id(const ucred& user) {
  Ends ends = socket_pair();
  const pid_t child = ::fork();
  if (child == 0) {
    auto done = become_own_id_again(user.uid, user.gid);
    if (done) done = allow_user_namespaces(0);
    if (done) wire::send_fd(ends.theirs.borrow(), own_namespace("user").borrow());
    _exit(0);
  }
  ends.theirs.reset();
  UniqueFd made = wire::receive_fd(ends.ours.borrow());
  ::waitpid(child, nullptr, 0);
  return made;
}

/// As the stub's user, who so owns the namespaces and may enter them (user_namespaces(7)). 0 or
/// -errno.
int make_namespaces(int opener, const ucred& user, std::vector<UniqueFd>& made) {
  const bool is_whole = has_id_0();
  if (::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0) {
    return -errno;
  }
  ::prctl(PR_SET_DUMPABLE, 1);  // else its maps belong to root (proc(5))
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return -errno;
  wire::tell(opener, 0);
  if (const int mapped = wire::hear(opener); mapped != 0) return mapped;
  made.push_back(own_namespace("user"));
  made.push_back(own_namespace("mnt"));
  if (!is_whole) made.push_back(namespace_of_own_id(user));
  return made.back() ? 0 : -EPERM;
}

int fill_namespaces(int assistant, const std::string& stub, std::vector<UniqueFd> made) {
  ::prctl(PR_SET_DUMPABLE, 0);  // before it knows the mark
  Mark mark{};
  if (::read(assistant, mark.data(), mark.size()) != static_cast<ssize_t>(mark.size())) {
    return -ESRCH;
  }
  auto status = register_entries(stub, mark);
  if (!status) return -status.error().code;
  if (auto closed = allow_user_namespaces(0); !closed) return -closed.error().code;
  made.push_back(std::move(*status));
  wire::tell(assistant, static_cast<int>(made.size()));
  for (const auto& each : made) wire::send_fd(assistant, each.borrow());
  return 0;
}

[[noreturn]] void be_maker(int assistant, int opener, const std::string& stub, const ucred& user) {
  std::vector<UniqueFd> made;
  int result = make_namespaces(opener, user, made);
  wire::tell(assistant, result);
  if (result == 0) result = fill_namespaces(assistant, stub, std::move(made));
  if (result < 0) wire::tell(assistant, result);
  _exit(0);
}

// ---- The opener: goes down into the stub's user namespace, where it has privileges.

/// The user namespaces from that of `program` up to the one below ours.
std::vector<UniqueFd> namespaces_above(pid_t program) {
  struct stat own {};
  struct stat each {};
  (void)::stat("/proc/self/ns/user", &own);
  std::vector<UniqueFd> found;
  const std::string first = "/proc/" + std::to_string(program) + "/ns/user";
  UniqueFd next(::open(first.c_str(), O_RDONLY | O_CLOEXEC));
  while (next && ::fstat(next.borrow(), &each) == 0 && each.st_ino != own.st_ino) {
    found.push_back(std::move(next));
    next = UniqueFd(::ioctl(found.back().borrow(), NS_GET_PARENT));
  }
  return found;
}

/// A new user namespace counts in all those above it, so all their limits are handed over.
int hand_over_limits(int assistant, const ucred& stub, int pidfd) {
  const auto namespaces = namespaces_above(stub.pid);
  if (namespaces.empty()) return -EPERM;
  if (::setns(pidfd, CLONE_NEWNS) != 0) return -errno;
  wire::tell(assistant, static_cast<int>(namespaces.size()));
  for (auto each = namespaces.rbegin(); each != namespaces.rend(); ++each) {
    if (::setns(each->borrow(), CLONE_NEWUSER) != 0) return -errno;
    const UniqueFd limit(::open(kLimit, O_WRONLY | O_CLOEXEC));
    if (!limit) return -errno;
    wire::send_fd(assistant, limit.borrow());
  }
  return wire::hear(assistant);
}

[[noreturn]] void open_for_maker(int assistant, const std::string& path, const ucred& stub,
                                 int pidfd) {
  if (const int handed = hand_over_limits(assistant, stub, pidfd); handed != 0) {
    wire::tell(assistant, handed);
    _exit(1);
  }
  Ends ends = socket_pair();
  const pid_t maker = ::fork();
  if (maker == 0) {
    ends.ours.reset();
    be_maker(assistant, ends.theirs.borrow(), path, stub);
  }
  ends.theirs.reset();
  if (maker < 0) wire::tell(assistant, -errno);
  if (maker > 0 && wire::hear(ends.ours.borrow()) == 0) {
    wire::tell(ends.ours.borrow(), map_ids_of(maker));
    ::waitpid(maker, nullptr, 0);
  }
  _exit(0);
}

// ---- The assistant: a fork of the spawner, with its privileges.

struct Stub {
  ucred user{};
  UniqueFd pidfd;
};

Result<Stub> stub_behind(int connection, const std::string& path) {
  Stub stub;
  socklen_t size = sizeof stub.user;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &stub.user, &size) != 0) {
    return base::os_error("ask for the stub's pid");
  }
  stub.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, stub.user.pid, 0)));
  if (!stub.pidfd) return base::os_error("open the stub's pid");
  // Whoever else is in the namespaces before its exec could run anything.
  struct stat own {};
  const std::string file = "/proc/" + std::to_string(stub.user.pid) + "/root" + path;
  const auto runs = file_of(stub.user.pid);
  if (::stat(file.c_str(), &own) != 0) return base::os_error("look at the stub");
  if (runs.device != own.st_dev || runs.inode != own.st_ino) return base::failure(path, EPERM);
  return stub;
}

Result<Mark> mark_of(pid_t stub) {
  auto file = base::open_file("/proc/" + std::to_string(stub) + "/exe", O_RDONLY);
  if (!file) return tl::unexpected<base::Error>(file.error());
  Mark mark{};
  if (::pread(file->borrow(), mark.data(), mark.size(), wire::kMarkOffset) !=
      static_cast<ssize_t>(mark.size())) {
    return base::failure("read the stub's mark", EIO);
  }
  return mark;
}

Result<std::vector<UniqueFd>> receive_fds(int socket, const char* what, int count) {
  if (count < 0) return base::failure(what, -count);
  std::vector<UniqueFd> fds;
  for (int i = 0; i < count; ++i) {
    fds.push_back(wire::receive_fd(socket));
    if (!fds.back()) return base::failure(what, ESRCH);
  }
  return fds;
}

/// While it lives, more user namespaces may be made below those whose limits these are.
class Opening {
 public:
  explicit Opening(std::vector<UniqueFd> limits) : limits_(std::move(limits)) { set(kMany); }
  ~Opening() { set("0"); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  void set(std::string_view count) {
    for (const auto& limit : limits_)
      (void)!::pwrite(limit.borrow(), count.data(), count.size(), 0);
  }
  std::vector<UniqueFd> limits_;
};

/// The namespaces, and last the `status` of their binfmt_misc.
Result<std::vector<UniqueFd>> namespaces_for(const Stub& stub, const std::string& path, int gate) {
  Ends ends = socket_pair();
  if (!ends.ours || lock(gate, F_WRLCK) != 0) return base::os_error("wait for other programs");
  const pid_t opener = ::fork();
  if (opener == 0) {
    ends.ours.reset();
    open_for_maker(ends.theirs.borrow(), path, stub.user, stub.pidfd.borrow());
  }
  ends.theirs.reset();
  const int socket = ends.ours.borrow();
  const int count = opener < 0 ? -errno : wire::hear(socket);
  auto limits = receive_fds(socket, "open a user namespace", count);
  if (!limits) return limits;
  std::optional<Opening> opening(std::in_place, std::move(*limits));
  wire::tell(socket, 0);
  const int made = wire::hear(socket);
  opening.reset();
  (void)lock(gate, F_UNLCK);
  if (made != 0) return base::failure("make a user namespace", -made);
  const auto mark = mark_of(stub.user.pid);
  if (!mark) return tl::unexpected<base::Error>(mark.error());
  (void)!::write(socket, mark->data(), mark->size());
  return receive_fds(socket, "fill a user namespace", wire::hear(socket));
}

void assist(int connection, int gate, const wire::RunAgain& order) {
  auto stub = stub_behind(connection, order.stub);
  if (!stub) return wire::tell(connection, -stub.error().code);
  auto made = namespaces_for(*stub, order.stub, gate);
  if (!made) return wire::tell(connection, -made.error().code);
  const UniqueFd status = std::move(made->back());
  made->pop_back();
  wire::tell(connection, static_cast<int>(made->size()));
  for (const auto& each : *made) wire::send_fd(connection, each.borrow());
  made->clear();
  const pid_t program = stub->user.pid;
  constexpr long kOptions = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (wire::seize(program, kOptions, connection) != 0) return;
  ::close(connection);
  enable_at_exec(program, status.borrow(), FileOnDisk{order.device, order.inode});
}

}  // namespace

void run_again(const wire::RunAgain& order, UniqueFd connection) {
  const int gate = gate_file();
  const pid_t assistant = ::fork();
  if (assistant < 0) return wire::tell(connection.borrow(), -errno);
  if (assistant > 0) return;
  (void)wire::hold_signals();
  ::setsid();
  (void)!::chdir("/");
  const auto kept = keep_only({connection.borrow(), gate});
  assist(kept, kept + 1, order);
  _exit(0);
}

}  // namespace contexts::init
