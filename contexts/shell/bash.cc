#include "contexts/shell/bash.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"

namespace contexts::shell {
namespace {

constexpr int kSocketInBash = 3;

base::Result<base::UniqueFd> to_memfd(const std::string& bytes) {
  base::UniqueFd memfd(static_cast<int>(::syscall(SYS_memfd_create, "airlock-command", 1u)));
  if (!memfd) return base::os_error("memfd_create");
  if (auto written = base::write_all(memfd.borrow(), bytes); !written) {
    return tl::unexpected<base::Error>(written.error());
  }
  return memfd;
}

/// What bash needs to be told; everything else is this process's own.
wire::ExecRequest request_of(const std::string& path, const std::string& loadable,
                             const wire::StringList& env, const std::string& folder) {
  auto request = request_in(folder);
  request.path = path;
  request.argv = {
      "bash", "--noprofile", "--norc", "-c", "enable -f \"$1\" airlock_serve && airlock_serve 3",
      "bash", loadable};
  request.env = env;
  request.fd_numbers = {0, 1, 2, kSocketInBash};
  return request;
}

}  // namespace

base::Result<std::unique_ptr<Bash>> Bash::start(const std::string& path,
                                                const std::string& loadable,
                                                const wire::StringList& env,
                                                const std::string& folder) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  auto complaints = make_complaints();
  if (!complaints) return tl::unexpected<base::Error>(complaints.error());
  std::vector<base::UniqueFd> fds;
  for (int i = 0; i < 2; ++i) fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  fds.emplace_back(::fcntl(complaints->borrow(), F_DUPFD_CLOEXEC, 3));
  fds.push_back(std::move(theirs));
  (void)base::set_nonblocking(ours.borrow(), true);
  auto launch =
      std::make_unique<init::Launch>(request_of(path, loadable, env, folder), std::move(fds), 0);
  auto pid = launch->start();
  if (!pid) return tl::unexpected<base::Error>(pid.error());
  return std::unique_ptr<Bash>(
      new Bash(std::move(ours), std::move(*complaints), std::move(launch), *pid));
}

Bash::~Bash() { Bash::kill(); }

void Bash::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

base::Result<void> Bash::send(const CommandText& text,
                              const std::vector<base::UniqueFd>& standard) {
  EncodedCommand encoded = encode_command(text);
  base::UniqueFd memfd;
  int fds[4] = {standard[0].borrow(), standard[1].borrow(), standard[2].borrow(), -1};
  if (encoded.head.is_long != 0) {
    auto made = to_memfd(encoded.payload);
    if (!made) return tl::unexpected<base::Error>(made.error());
    memfd.reset(made->release());
    fds[3] = memfd.borrow();
  }
  const std::size_t fd_bytes = sizeof(int) * (encoded.head.is_long != 0 ? 4 : 3);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec parts[2] = {
      {&encoded.head, sizeof encoded.head},
      {encoded.payload.data(), encoded.head.is_long != 0 ? 0 : encoded.payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = static_cast<socklen_t>(CMSG_SPACE(fd_bytes));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = static_cast<socklen_t>(CMSG_LEN(fd_bytes));
  std::memcpy(CMSG_DATA(rights), fds, fd_bytes);
  if (::sendmsg(socket_.borrow(), &message, MSG_NOSIGNAL) < 0)
    return base::os_error("send to bash");
  return {};
}

base::Result<std::optional<Report>> Bash::receive() {
  static char buffer[sizeof(ShellReport) + kShellMaxReportBytes];
  if (launch_ && launch_->is_released()) launch_.reset();
  const ssize_t n = ::recv(socket_.borrow(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Report>();
  if (n <= 0) return base::failure("receive from bash", ECONNRESET);
  auto report = decode_report({buffer, static_cast<std::size_t>(n)});
  if (!report) return tl::unexpected<base::Error>(report.error());
  return std::optional<Report>(std::move(*report));
}

}  // namespace contexts::shell
