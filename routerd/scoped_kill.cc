#include "routerd/scoped_kill.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

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

/// False if it has ended.
bool send(const base::UniqueFd& pidfd, int signal) {
  return !has_ended(pidfd) && ::syscall(SYS_pidfd_send_signal, pidfd.borrow(), signal, 0, 0) == 0;
}

}  // namespace

ScopedKill::ScopedKill(boost::asio::io_context& io, Find find, Order order,
                       std::function<void(const Result&)> then)
    : timer_(io), find_(std::move(find)), order_(order), then_(std::move(then)) {}

void ScopedKill::start() {
  const auto now = Clock::now();
  result_.delivered = reach(order_.signal);
  until_ = now + (order_.second_signal != 0 ? order_.after : kPatience);
  last_ = now + order_.after + kMostPatience;
  watch();
}

ScopedKill::Targets ScopedKill::open_new() {
  Targets opened;
  are_more_ = false;
  for (const pid_t pid : find_()) {
    if (targets_.contains(pid)) continue;
    if (targets_.size() + opened.size() >= kMostHeld) {
      are_more_ = true;
      break;
    }
    base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd && errno != ESRCH) are_more_ = true;  // no descriptor is left
    if (pidfd && !has_ended(pidfd)) opened.emplace(pid, std::move(pidfd));
  }
  if (opened.empty()) return opened;
  // Who has got a number between being found and being opened may be anybody.
  const auto still = find_();
  std::erase_if(opened, [&still](const auto& each) { return !still.contains(each.first); });
  return opened;
}

/// Signals those who have not got a signal yet, and whom they start meanwhile.
int ScopedKill::reach(int signal) {
  int delivered = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    std::erase_if(targets_, [](const auto& each) { return has_ended(each.second); });
    auto found = open_new();
    if (found.empty()) break;
    for (const auto& [pid, pidfd] : found) delivered += send(pidfd, signal);
    targets_.merge(found);
  }
  return delivered;
}

int ScopedKill::count_left() {
  std::erase_if(targets_, [](const auto& each) { return has_ended(each.second); });
  if (!are_more_) return static_cast<int>(targets_.size());
  auto all = find_();
  for (const auto& [pid, pidfd] : targets_) all.insert(pid);
  return static_cast<int>(all.size());
}

void ScopedKill::watch() {
  const int more = are_more_ ? reach(order_.signal) : 0;
  result_.delivered += more;
  if (more > 0 && order_.second_signal == 0) until_ = std::min(Clock::now() + kPatience, last_);
  const int left = count_left();
  const bool is_late = Clock::now() >= until_;
  if (left > 0 && is_late && order_.second_signal != 0) {
    order_.signal = std::exchange(order_.second_signal, 0);
    for (const auto& [pid, pidfd] : targets_) send(pidfd, order_.signal);
    result_.delivered += reach(order_.signal);
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
