#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/unique_fd.h"

namespace routerd {

/// A signal to many processes, by pidfd so that no reused pid gets it, perhaps a second one to who
/// is left, and the count of who is left then. Lives as long as it waits.
class ScopedKill : public std::enable_shared_from_this<ScopedKill> {
 public:
  struct Order {
    int signal = 0;
    /// After `after` those that are left get this one; 0: no second signal.
    int second_signal = 0;
    std::chrono::milliseconds after{0};
  };
  struct Result {
    int delivered = 0;  ///< processes that got a signal
    int survivors = 0;  ///< of all that were found
  };
  /// Who there is to be killed now; asked again until nobody new is found, as they may fork.
  using Find = std::function<std::set<pid_t>()>;
  ScopedKill(boost::asio::io_context& io, Find find, Order order,
             std::function<void(const Result&)> then);
  /// Signals; `then` is called once, later: when all have ended, or kPatience after the last
  /// signal, of which a fork bomb may want more than kMostPatience has time for.
  void start();

  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::milliseconds kMostPatience{5000};
  /// Descriptors held at a time; more processes are reached as these end, or counted at the end.
  static constexpr std::size_t kMostHeld = 1024;

 private:
  using Clock = std::chrono::steady_clock;
  using Targets = std::map<pid_t, base::UniqueFd>;
  int reach(int signal);
  Targets open_new();
  void watch();
  int count_left();

  boost::asio::steady_timer timer_;
  Find find_;
  Order order_;
  std::function<void(const Result&)> then_;
  Result result_;
  /// Who was found and has not ended.
  Targets targets_;
  /// There were more than could be held.
  bool are_more_ = false;
  Clock::time_point until_;
  Clock::time_point last_;
};

}  // namespace routerd
