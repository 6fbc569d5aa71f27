#include "contexts/shell/loop.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file.h"
#include "base/hex.h"
#include "contexts/shell/processes.h"

namespace contexts::shell {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";

struct Pair {
  base::UniqueFd ours;
  base::UniqueFd theirs;
};

base::Result<Pair> make_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return base::os_error("socketpair");
  Pair pair{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  (void)base::set_nonblocking(pair.ours.borrow(), true);
  return pair;
}

std::string_view preload_in(const std::vector<std::string>& env) {
  for (const auto& entry : env) {
    if (entry.starts_with(kPreload)) return std::string_view(entry).substr(kPreload.size());
  }
  return {};
}

wire::ExecRequest request_of(const std::string& path, const std::string& receiver,
                             const std::vector<std::string>& env, const std::string& folder) {
  auto request = request_in(folder);
  request.path = path;
  request.argv = {"bash", "--noprofile", "--norc"};
  for (const auto& entry : env) {
    if (!entry.starts_with(kPreload)) request.env.add(entry);
  }
  const auto others = preload_in(env);
  request.env.add(std::string(kPreload) + receiver + (others.empty() ? "" : ":") +
                  std::string(others));
  request.fd_numbers = {0, 1, 2, kShellLoopChannel};
  return request;
}

base::Result<std::string> make_nonce() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return base::os_error("getrandom");
  }
  return base::hex(bytes);
}

/// 0, or why no program of this user can be in `folder`: errno.
int obstacle_in(const std::string& folder) {
  if (folder.empty()) return 0;
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return errno;
  if (!S_ISDIR(info.st_mode)) return ENOTDIR;
  return ::access(folder.c_str(), X_OK) == 0 ? 0 : errno;
}

base::Result<void> send_descriptors(int channel, const std::vector<base::UniqueFd>& standard) {
  int fds[kShellLoopFds];
  for (int i = 0; i < kShellLoopFds; ++i) fds[i] = standard[static_cast<std::size_t>(i)].borrow();
  char byte = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = static_cast<socklen_t>(CMSG_LEN(sizeof fds));
  std::memcpy(CMSG_DATA(rights), fds, sizeof fds);
  if (::sendmsg(channel, &message, MSG_NOSIGNAL) != 1) return base::os_error("send to bash");
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Loop>> Loop::start(const std::string& path,
                                                const std::string& receiver,
                                                const std::vector<std::string>& env,
                                                const std::string& folder) {
  auto script = make_pair(SOCK_STREAM);
  auto channel = make_pair(SOCK_SEQPACKET);
  auto complaints = make_complaints();
  auto nonce = make_nonce();
  if (!script || !channel || !complaints || !nonce) return base::os_error("prepare bash");
  std::unique_ptr<Loop> loop(new Loop);
  loop->script_ = std::move(script->ours);
  loop->channel_ = std::move(channel->ours);
  loop->nonce_ = std::move(*nonce);
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(script->theirs));
  fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  fds.emplace_back(::fcntl(complaints->borrow(), F_DUPFD_CLOEXEC, 3));
  fds.push_back(std::move(channel->theirs));
  loop->complaints_ = std::move(*complaints);
  loop->launch_ =
      std::make_unique<init::Launch>(request_of(path, receiver, env, folder), std::move(fds), 0);
  auto pid = loop->launch_->start();
  if (!pid) return tl::unexpected<base::Error>(pid.error());
  loop->pid_ = *pid;
  (void)loop->say(first_script(loop->nonce_, preload_in(env)));
  return loop;
}

Loop::~Loop() { Loop::kill(); }

void Loop::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::string Loop::complaint() const { return read_complaints(complaints_.borrow()); }

base::Result<void> Loop::say(const std::string& script) {
  unsent_ += script;
  return flush();
}

/// As much as the socket takes now; receive() sends the rest.
base::Result<void> Loop::flush() {
  while (!unsent_.empty()) {
    const ssize_t n =
        ::send(script_.borrow(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? base::Result<void>() : base::os_error("write to bash");
    unsent_.erase(0, static_cast<std::size_t>(n));
  }
  return {};
}

base::Result<void> Loop::send(const CommandText& text,
                              const std::vector<base::UniqueFd>& standard) {
  for (const auto entry : text.scoped.views()) {
    const auto name = entry.substr(0, entry.find('='));
    if (is_shell_name(name)) continue;
    return base::failure(
        "set '" + std::string(name) + "' for one command", EINVAL,
        "a plain bash has only variables that are called by letters, digits and _");
  }
  auto nonce = make_nonce();
  if (!nonce) return tl::unexpected<base::Error>(nonce.error());
  nonce_ = std::move(*nonce);
  for (const auto* folder : {&text.folder, &text.scoped_folder}) {
    refused_ = {.kind = kShellRefused, .pid = pid_, .error = obstacle_in(*folder)};
    refused_.is_scoped_folder = folder == &text.scoped_folder ? 1 : 0;
    if (refused_.error == 0) continue;
    phase_ = Phase::refusing;
    return say(empty_script(nonce_));
  }
  phase_ = Phase::beginning;
  text_ = text;
  folder_before_ = text.folder.empty() ? current_folder() : text.folder;
  if (auto sent = send_descriptors(channel_.borrow(), standard); !sent) return sent;
  return say(command_script(nonce_, text, state_));
}

base::Result<void> Loop::hear() {
  char block[16384];
  for (;;) {
    const ssize_t n = ::recv(script_.borrow(), block, sizeof block, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n <= 0) return base::failure("receive from bash", ECONNRESET);
    heard_.append(block, static_cast<std::size_t>(n));
  }
}

base::Result<std::optional<Report>> Loop::receive() {
  if (launch_ && launch_->is_released()) launch_.reset();
  const auto is_there = hear();
  (void)flush();  // to a bash that has ended: then there is nothing to hear either
  if (auto report = take_report()) return report;
  if (!is_there) return tl::unexpected<base::Error>(is_there.error());
  return std::optional<Report>();
}

bool Loop::is_deaf() const {
  int left = 0;
  return phase_ != Phase::idle && unsent_.empty() &&
         ::ioctl(script_.borrow(), SIOCOUTQ, &left) == 0 && left == 0;
}

std::optional<Report> Loop::take_report() {
  auto fields = take_fields(heard_, nonce_);
  if (!fields) return {};
  Report report;
  report.head.pid = pid_;
  switch (phase_) {
    case Phase::starting:
      report.head.kind = kShellReady;
      phase_ = Phase::idle;
      return report;
    case Phase::refusing:
      report.head = refused_;
      phase_ = Phase::idle;
      return report;
    case Phase::beginning:
      return begun(std::move(*fields));
    case Phase::running:
      return finished(std::move(*fields));
    case Phase::idle:
      break;
  }
  return {};
}

std::optional<Report> Loop::begun(std::vector<std::string> fields) {
  auto begun = begun_of(std::move(fields));
  if (!begun) return {};
  begun_ = std::move(*begun);
  usage_before_ = take_usage();
  phase_ = Phase::running;
  Report report;
  report.head.kind = kShellStarted;
  report.head.pid = pid_;
  report.head.no_checkpoint = kShellMakesNoCopies;
  return report;
}

std::optional<Report> Loop::finished(std::vector<std::string> fields) {
  auto finished = finished_of(std::move(fields));
  if (!finished) return {};
  phase_ = Phase::idle;
  state_ = std::move(finished->state);
  const ShellUsage usage = take_usage();
  Report report;
  report.head = {.kind = kShellDone, .pid = pid_, .status = state_.status};
  report.head.user_us = usage.user_us - usage_before_.user_us;
  report.head.system_us = usage.system_us - usage_before_.system_us;
  report.head.max_rss_kib = usage.max_rss_kib;
  report.background = children_of(pid_);
  wire::StringList own = text_.scoped;
  if (!text_.scoped_folder.empty()) {
    own.add("PWD");
    own.add("OLDPWD");
  }
  report.folder = text_.scoped_folder.empty() ? current_folder() : folder_before_;
  report.changed_names = changed_names(begun_.exports, finished->exports, own);
  (void)say(restore_script(text_, begun_));
  return report;
}

/// Empty if it has been removed.
std::string Loop::current_folder() const {
  auto folder = base::read_link("/proc/" + std::to_string(pid_) + "/cwd");
  return folder && !folder->ends_with(" (deleted)") ? *folder : std::string();
}

/// The last one that came; all zero if none did.
ShellUsage Loop::take_usage() {
  ShellUsage usage{};
  while (::recv(channel_.borrow(), &usage, sizeof usage, MSG_DONTWAIT) == sizeof usage) {
  }
  return usage;
}

}  // namespace contexts::shell
