#include "contexts/shell/plain.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace contexts::shell {
namespace {

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

void unset(std::vector<std::string>& env, std::string_view name) {
  std::erase_if(env, [name](const std::string& entry) { return name_in(entry) == name; });
}

void set(std::vector<std::string>& env, std::string_view entry) {
  unset(env, name_in(entry));
  env.emplace_back(entry);
}

}  // namespace

PlainShell::PlainShell(std::vector<std::string> env, std::string folder)
    : env_(std::move(env)),
      folder_(std::move(folder)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  report(kShellReady);
}

PlainShell::~PlainShell() { PlainShell::kill(); }

void PlainShell::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void PlainShell::report(ShellReportKind kind) {
  Report report;
  report.head.kind = kind;
  report.head.no_checkpoint = kShellMakesNoCopies;
  reports_.push_back(std::move(report));
  const std::uint64_t one = 1;
  (void)!::write(wake_.borrow(), &one, sizeof one);
}

wire::ExecRequest PlainShell::request_of(const CommandText& text) const {
  std::vector<std::string> env = env_;
  for (const auto entry : text.scoped.views()) set(env, entry);
  auto request = request_in(text.scoped_folder.empty() ? folder_ : text.scoped_folder);
  request.path = "/bin/sh";
  request.argv = {"sh", "-c", text.command};
  for (const auto& entry : env) request.env.add(entry);
  request.fd_numbers = {0, 1, 2};
  return request;
}

base::Result<void> PlainShell::send(const CommandText& text,
                                    const std::vector<base::UniqueFd>& standard) {
  for (const auto entry : text.set.views()) set(env_, entry);
  for (const auto name : text.unset.views()) unset(env_, name);
  if (!text.folder.empty()) folder_ = text.folder;
  std::vector<base::UniqueFd> fds;
  for (const auto& fd : standard) fds.emplace_back(::fcntl(fd.borrow(), F_DUPFD_CLOEXEC, 3));
  launch_ = std::make_unique<init::Launch>(request_of(text), std::move(fds), 0);
  auto pid = launch_->start();
  if (!pid) return tl::unexpected<base::Error>(pid.error());
  pid_ = *pid;
  report(kShellStarted);
  return {};
}

std::optional<wire::NotStarted> PlainShell::refusal() const {
  if (!launch_ || launch_->error() == 0) return {};
  return launch_->refusal();
}

base::Result<std::optional<Report>> PlainShell::receive() {
  if (reports_.empty()) {
    std::uint64_t count = 0;
    (void)!::read(wake_.borrow(), &count, sizeof count);
    return std::optional<Report>();
  }
  std::optional<Report> next(std::move(reports_.front()));
  reports_.pop_front();
  return next;
}

}  // namespace contexts::shell
