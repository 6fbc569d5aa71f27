#include "routerd/fd_rules.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using base::UniqueFd;
using routerd::refusal_of;

namespace {

UniqueFd open_path(const std::string& path, int flags = O_RDONLY) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) FAIL("open " << path << ": " << std::strerror(errno));
  return fd;
}

template <class... Args>
UniqueFd by_syscall(long number, Args... args) {
  return UniqueFd(static_cast<int>(::syscall(number, args...)));
}

/// False, and a warning in the report, where this machine has no such descriptor to be refused.
bool is_available(const UniqueFd& fd, const char* what) {
  if (fd) return true;
  WARN("not run: no " << what << " here: " << std::strerror(errno));
  return false;
}

}  // namespace

TEST_CASE("ordinary descriptors pass", "[routerd]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const auto pipe = support::make_pipe();
  const auto sockets = support::stream_pair();
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const auto& fd :
       {open_path("/dev/null", O_RDWR), open_path("/etc/passwd"), open_path("/etc/passwd", O_PATH),
        open_path("/proc/self/exe"), open_path("/dev/ptmx", O_RDWR | O_NOCTTY)}) {
    CAPTURE(support::name_of_fd(fd.borrow()));
    CHECK(refusal_of(fd.borrow()).empty());
  }
  const UniqueFd fifo = open_path(folder / "fifo", O_RDWR);
  const UniqueFd memory = support::marked_fd("memory");
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const UniqueFd notify(::inotify_init1(IN_CLOEXEC));
  for (const int fd :
       {pipe.read.borrow(), pipe.write.borrow(), sockets.ours.borrow(), fifo.borrow(),
        memory.borrow(), event.borrow(), timer.borrow(), notify.borrow()}) {
    CAPTURE(support::name_of_fd(fd));
    CHECK(refusal_of(fd).empty());
  }
}

TEST_CASE("folders are refused, O_PATH or not", "[routerd]") {
  CHECK(refusal_of(open_path("/", O_RDONLY | O_DIRECTORY).borrow()) == "a folder");
  CHECK(refusal_of(open_path("/tmp", O_PATH).borrow()) == "a folder");
  CHECK(refusal_of(open_path("/proc/self").borrow()) == "a folder");
}

TEST_CASE("files of /proc are refused, O_PATH, symbolic link or not", "[routerd]") {
  CHECK(refusal_of(open_path("/proc/self/status").borrow()) == "a procfs file");
  CHECK(refusal_of(open_path("/proc/self/status", O_PATH).borrow()) == "a procfs file");
  CHECK(refusal_of(open_path("/proc/self/exe", O_PATH | O_NOFOLLOW).borrow()) == "a procfs file");
  CHECK(refusal_of(open_path("/proc/sys/kernel/ostype").borrow()) == "a procfs file");
  CHECK(refusal_of(open_path("/proc/self/mem").borrow()) == "a procfs file");
}

TEST_CASE("namespaces are refused", "[routerd]") {
  for (const auto* kind : {"pid", "mnt", "net", "user", "ipc", "uts", "cgroup"}) {
    CAPTURE(kind);
    CHECK(refusal_of(open_path(std::string("/proc/self/ns/") + kind).borrow()) == "a namespace");
  }
}

TEST_CASE("cgroup files are refused", "[routerd]") {
  bool is_any = false;
  for (const auto* path : {"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
                           "/sys/fs/cgroup/memory/cgroup.procs"}) {
    const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    if (!fd) continue;
    is_any = true;
    CAPTURE(path);
    CHECK(refusal_of(fd.borrow()) == "a cgroup file");
  }
  if (!is_any) WARN("not run: no cgroup file here");
}

TEST_CASE("listening sockets are refused, connected and fresh ones pass", "[routerd]") {
  const int family = GENERATE(AF_UNIX, AF_INET);
  const UniqueFd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(listener);
  CHECK(refusal_of(listener.borrow()).empty());
  sockaddr_storage address{};
  socklen_t size = sizeof(sa_family_t);  // autobind: an abstract name, or a free port
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    size = sizeof(sockaddr_in);
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  REQUIRE(::bind(listener.borrow(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(refusal_of(listener.borrow()).empty());
  REQUIRE(::listen(listener.borrow(), 1) == 0);
  CHECK(refusal_of(listener.borrow()) == "a listening socket");

  size = sizeof address;
  REQUIRE(::getsockname(listener.borrow(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const UniqueFd client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(client.borrow(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  const UniqueFd accepted(::accept4(listener.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted);
  CHECK(refusal_of(client.borrow()).empty());
  CHECK(refusal_of(accepted.borrow()).empty());
}

TEST_CASE("epoll is refused", "[routerd]") {
  const UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("[eventpoll]"));
}

TEST_CASE("a pidfd is refused", "[routerd]") {
  const UniqueFd fd = by_syscall(SYS_pidfd_open, ::getpid(), 0);
  REQUIRE(fd);
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("pidfd"));
}

TEST_CASE("io_uring is refused", "[routerd]") {
  std::uint32_t parameters[30]{};  // struct io_uring_params
  const UniqueFd fd = by_syscall(SYS_io_uring_setup, 1, parameters);
  if (!is_available(fd, "io_uring")) return;
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("[io_uring]"));
}

TEST_CASE("userfaultfd is refused", "[routerd]") {
  const UniqueFd fd = by_syscall(SYS_userfaultfd, O_CLOEXEC);
  if (!is_available(fd, "userfaultfd")) return;
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("[userfaultfd]"));
}

TEST_CASE("a perf event is refused", "[routerd]") {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.disabled = 1;
  const UniqueFd fd = by_syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (!is_available(fd, "perf event")) return;
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("[perf_event]"));
}

TEST_CASE("a bpf map is refused", "[routerd]") {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  const UniqueFd fd = by_syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
  if (!is_available(fd, "bpf map")) return;
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("bpf-"));
}

TEST_CASE("a Landlock ruleset is refused", "[routerd]") {
  std::uint64_t attributes[1] = {1};
  const UniqueFd fd =
      by_syscall(444 /* landlock_create_ruleset */, attributes, sizeof attributes, 0);
  if (!is_available(fd, "Landlock")) return;
  CHECK_THAT(refusal_of(fd.borrow()), Catch::Contains("[landlock"));
}

TEST_CASE("what a mount is made with is refused", "[routerd][root]") {
  if (support::lacks_root()) return;
  const UniqueFd tree = by_syscall(428 /* open_tree */, AT_FDCWD, "/tmp", 1 /* OPEN_TREE_CLONE */);
  if (is_available(tree, "open_tree")) CHECK(refusal_of(tree.borrow()) == "a folder");
}

TEST_CASE("an O_PATH descriptor of a socket, which can be connected to, is refused", "[routerd]") {
  const support::TempDir folder;
  const auto listener = support::listen_at(folder / "s");
  const UniqueFd path = open_path(folder / "s", O_PATH);
  CHECK_FALSE(refusal_of(path.borrow()).empty());
}

TEST_CASE("a file system being configured is refused", "[routerd][root]") {
  if (support::lacks_root()) return;
  const UniqueFd context = by_syscall(430 /* fsopen */, "tmpfs", 1 /* FSOPEN_CLOEXEC */);
  if (!is_available(context, "fsopen")) return;
  CHECK_FALSE(refusal_of(context.borrow()).empty());
}

TEST_CASE("a descriptor that is not open is refused", "[routerd]") {
  CHECK(refusal_of(-1) == "unreadable");
  CHECK(refusal_of(1'000'000) == "unreadable");
}

TEST_CASE("refused descriptors are left out, 0 to 2 become /dev/null", "[routerd]") {
  const support::FdLeakCheck leaks;
  wire::ExecRequest request;
  std::vector<UniqueFd> fds;
  const auto pass = [&](UniqueFd fd, std::uint32_t number) {
    request.fd_numbers.push_back(number);
    fds.push_back(std::move(fd));
  };
  pass(open_path("/tmp"), 0);
  pass(support::marked_fd("out"), 1);
  pass(open_path("/proc/self/status"), 2);
  pass(support::marked_fd("three"), 3);
  pass(open_path("/"), 4);
  pass(support::marked_fd("ten"), 10);
  const auto refused = routerd::filter_fds(request, fds, false);
  CHECK(refused == std::vector<std::string>{"0: a folder", "2: a procfs file", "4: a folder"});
  CHECK(request.fd_numbers == std::vector<std::uint32_t>{0, 1, 2, 3, 10});
  CHECK(support::names_of_fds(fds) ==
        std::vector<std::string>{"/dev/null", support::name_of_mark("out"), "/dev/null",
                                 support::name_of_mark("three"), support::name_of_mark("ten")});
  for (const auto& fd : fds) CHECK((::fcntl(fd.borrow(), F_GETFD) & FD_CLOEXEC) != 0);
  // Readable and writable, as whatever was there may have been.
  CHECK((::fcntl(fds[0].borrow(), F_GETFL) & O_ACCMODE) == O_RDWR);
}

TEST_CASE("a context of stdio only gets 0 to 2", "[routerd]") {
  const support::FdLeakCheck leaks;
  wire::ExecRequest request;
  request.fd_numbers = {0, 1, 2, 3, 100};
  auto fds = support::marked_fds(5);
  const auto refused = routerd::filter_fds(request, fds, true);
  CHECK(refused == std::vector<std::string>{"3: fds: stdio", "100: fds: stdio"});
  CHECK(request.fd_numbers == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(fds.size() == 3);
}

TEST_CASE("a request without descriptors stays one", "[routerd]") {
  wire::ExecRequest request;
  std::vector<UniqueFd> fds;
  CHECK(routerd::filter_fds(request, fds, false).empty());
  CHECK(request.fd_numbers.empty());
  CHECK(fds.empty());
}
