#include "routerd/terminal_rules.h"

#include <fcntl.h>

#include <algorithm>

#include "base/terminal.h"

namespace routerd {
namespace {

using contexts::Terminals;
using wire::TtyMode;

/// The terminal the requester speaks of; -1 if it does not pass one.
int offered_terminal(const wire::ExecRequest& request, const std::vector<base::UniqueFd>& fds) {
  if (request.tty == TtyMode::none) return -1;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (request.fd_numbers[i] != request.tty_fd) continue;
    return base::is_terminal(fds[i].borrow()) ? fds[i].borrow() : -1;
  }
  return -1;
}

TtyMode mode_of(Terminals policy, TtyMode asked, int offered) {
  if (asked == TtyMode::hand_over) {
    const bool may_give = offered >= 0 && base::is_pty_slave(offered);
    if (may_give && policy != Terminals::relay) return TtyMode::hand_over;
  }
  if (offered >= 0 && policy == Terminals::share) return TtyMode::none;
  return asked == TtyMode::none ? TtyMode::none : TtyMode::fresh;
}

}  // namespace

std::vector<std::string> settle_terminals(Terminals policy, wire::ExecRequest& request,
                                          std::vector<base::UniqueFd>& fds) {
  const int offered = offered_terminal(request, fds);
  request.tty = mode_of(policy, request.tty, offered);
  std::vector<std::string> refused;
  std::vector<base::UniqueFd> kept;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const int fd = fds[i].borrow();
    const std::uint32_t number = request.fd_numbers[i];
    const bool is_terminal = base::is_terminal(fd) && !base::is_pty_master(fd);
    if (is_terminal && policy != Terminals::share) {
      const bool is_offered = offered >= 0 && base::is_same_terminal(fd, offered);
      if (is_offered && request.tty == TtyMode::fresh) {
        request.terminal_fds.push_back(number);
        continue;
      }
      if (!is_offered || request.tty == TtyMode::none) {
        refused.push_back(std::to_string(number) + ": a terminal");
        if (number > 2) continue;
        fds[i].reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
      }
    }
    numbers.push_back(number);
    kept.push_back(std::move(fds[i]));
  }
  // `offered` was one of them, and closed with them unless it travels.
  fds = std::move(kept);
  request.fd_numbers = std::move(numbers);
  if (request.tty == TtyMode::fresh && request.terminal_fds.empty()) request.tty = TtyMode::none;
  if (request.tty != TtyMode::fresh) request.terminal_fds.clear();
  return refused;
}

}  // namespace routerd
