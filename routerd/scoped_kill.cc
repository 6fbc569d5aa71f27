#include "routerd/scoped_kill.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace routerd {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLook{10};
/// A fork bomb may be faster than this; what it has left is counted.
constexpr int kMostRounds = 20;

bool has_ended(const base::UniqueFd& pidfd) {
  pollfd end{pidfd.borrow(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 1;
}

}  // namespace

ScopedKill::ScopedKill(boost::asio::io_context& io, Find find, Order order,
                       std::function<void(const Result&)> then)
    : timer_(io), find_(std::move(find)), order_(order), then_(std::move(then)) {}

void ScopedKill::start() {
  result_.delivered = deliver(order_.signal);
  until_ = Clock::now() + (order_.second_signal != 0 ? order_.after : kPatience);
  watch();
}

/// To those found before, and to those found now.
int ScopedKill::deliver(int signal) {
  int delivered = 0;
  const auto send = [signal, &delivered](const base::UniqueFd& pidfd) {
    const bool is_sent =
        !has_ended(pidfd) && ::syscall(SYS_pidfd_send_signal, pidfd.borrow(), signal, 0, 0) == 0;
    delivered += is_sent ? 1 : 0;
  };
  for (const auto& [pid, pidfd] : targets_) send(pidfd);
  for (int round = 0; round < kMostRounds; ++round) {
    bool is_new = false;
    for (const pid_t pid : find_()) {
      if (targets_.contains(pid)) continue;
      base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      if (!pidfd) continue;  // has ended
      is_new = true;
      send(targets_.emplace(pid, std::move(pidfd)).first->second);
    }
    if (!is_new) break;
  }
  return delivered;
}

int ScopedKill::count_left() const {
  return static_cast<int>(
      std::ranges::count_if(targets_, [](const auto& each) { return !has_ended(each.second); }));
}

void ScopedKill::watch() {
  const int left = count_left();
  const bool is_late = Clock::now() >= until_;
  if (left > 0 && is_late && order_.second_signal != 0) {
    deliver(std::exchange(order_.second_signal, 0));
    until_ = Clock::now() + kPatience;
  } else if (left == 0 || is_late) {
    result_.survivors = left;
    return then_(result_);
  }
  timer_.expires_after(kLook);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->watch();
  });
}

}  // namespace routerd
