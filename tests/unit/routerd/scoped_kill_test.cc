#include "routerd/scoped_kill.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "tests/support/child.h"
#include "tests/support/fds.h"

using routerd::ScopedKill;
using namespace std::chrono_literals;

namespace {

/// Processes that end at any signal but those in `ignored`, and are there when this returns.
class Family {
 public:
  explicit Family(int count, std::initializer_list<int> ignored = {}) {
    auto ready = support::make_pipe();
    for (int i = 0; i < count; ++i) {
      children_.emplace_back([&] {
        for (const int signal : ignored) ::signal(signal, SIG_IGN);
        if (::write(ready.write.borrow(), "r", 1) != 1) return 1;
        for (;;) ::pause();
        return 0;
      });
    }
    for (int i = 0; i < count; ++i) (void)support::read_byte(ready.read.borrow());
  }
  std::set<pid_t> pids() const {
    std::set<pid_t> pids;
    for (const auto& child : children_) pids.insert(child.pid());
    return pids;
  }

 private:
  std::deque<support::Child> children_;
};

ScopedKill::Result result_of(ScopedKill::Find find, const ScopedKill::Order& order) {
  boost::asio::io_context io;
  std::optional<ScopedKill::Result> result;
  std::make_shared<ScopedKill>(io, std::move(find), order, [&result](const auto& told) {
    result = told;
  })->start();
  io.run();
  return result.value_or(ScopedKill::Result{-1, -1});
}

}  // namespace

TEST_CASE("all get the signal, and who ignores it is counted", "[routerd]") {
  const Family mortal(3), deaf(2, {SIGTERM});
  const auto result = result_of(
      [&] {
        auto all = mortal.pids();
        all.merge(deaf.pids());
        return all;
      },
      {.signal = SIGTERM});
  CHECK(result.delivered == 5);
  CHECK(result.survivors == 2);
}

TEST_CASE("a second signal for those that are left", "[routerd]") {
  const Family deaf(2, {SIGTERM});
  const auto result = result_of([&] { return deaf.pids(); },
                                {.signal = SIGTERM, .second_signal = SIGKILL, .after = 10ms});
  CHECK(result.delivered == 2);
  CHECK(result.survivors == 0);
}

TEST_CASE("who is found only later is reached, too", "[routerd]") {
  const Family first(1), second(1);
  int asked = 0;
  const auto result = result_of(
      [&] {
        auto found = first.pids();
        if (++asked > 2) found.merge(second.pids());
        return found;
      },
      {.signal = SIGKILL});
  CHECK(result.delivered == 2);
  CHECK(result.survivors == 0);
}

TEST_CASE("a number that is no member's any more is left alone", "[routerd]") {
  const Family member(1), stranger(1);
  int asked = 0;
  const auto result = result_of(
      [&] {
        auto found = member.pids();
        if (++asked == 1) found.merge(stranger.pids());
        return found;
      },
      {.signal = SIGKILL});
  CHECK(result.delivered == 1);
  CHECK(::kill(*stranger.pids().begin(), 0) == 0);
}

TEST_CASE("more processes than descriptors are reached as others end", "[routerd]") {
  const Family many(60);
  const auto told = support::text_of_child([&] {
    // The ones of the test and of io_context fit, and some twenty more.
    const auto next = static_cast<rlim_t>(support::make_pipe().write.borrow());
    const rlimit few{next + 24, next + 24};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto result = result_of([&] { return many.pids(); }, {.signal = SIGKILL});
    return std::to_string(result.delivered) + " " + std::to_string(result.survivors);
  });
  CHECK(told == "60 0");
}
