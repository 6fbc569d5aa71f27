#include "routerd/terminal_rules.h"

#include <fcntl.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "base/terminal.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"

using contexts::Terminals;
using wire::TtyMode;

namespace {

base::Pty open_pty() {
  auto pty = base::open_pty();
  REQUIRE(pty);
  return std::move(*pty);
}

/// A request of a requester on `pty`: its terminal on 0 and 5, a pipe on 1, another terminal on 2.
struct Request {
  explicit Request(TtyMode asked) {
    request.tty = asked;
    request.tty_fd = 0;
    add(0, base::duplicate(own.slave.borrow()));
    add(1, base::duplicate(pipe.write.borrow()));
    add(2, base::duplicate(other.slave.borrow()));
    add(5, base::duplicate(own.slave.borrow()));
    add(6, base::duplicate(other.slave.borrow()));
    add(7, base::duplicate(own.master.borrow()));
  }
  void add(std::uint32_t number, base::Result<base::UniqueFd> fd) {
    REQUIRE(fd);
    request.fd_numbers.push_back(number);
    fds.push_back(std::move(*fd));
  }
  std::vector<std::string> settle(Terminals policy) {
    return routerd::settle_terminals(policy, request, fds);
  }
  bool is_own(std::size_t at) const {
    return base::is_same_terminal(fds.at(at).borrow(), own.slave.borrow());
  }

  base::Pty own = open_pty();
  base::Pty other = open_pty();
  support::Pipe pipe = support::make_pipe();
  wire::ExecRequest request;
  std::vector<base::UniqueFd> fds;
};

using Numbers = std::vector<std::uint32_t>;
const std::vector<std::string> kOthers = {"2: a terminal", "6: a terminal"};

}  // namespace

TEST_CASE("a terminal to be relayed to does not travel, its numbers do", "[routerd]") {
  const support::FdLeakCheck leaks;
  for (const auto policy : {Terminals::automatic, Terminals::relay}) {
    Request job(TtyMode::fresh);
    CHECK(job.settle(policy) == kOthers);
    CHECK(job.request.tty == TtyMode::fresh);
    CHECK(job.request.terminal_fds == Numbers{0, 5});
    CHECK(job.request.fd_numbers == Numbers{1, 2, 7});
    REQUIRE(job.fds.size() == 3);
    CHECK(support::name_of_fd(job.fds[1].borrow()) == "/dev/null");
    CHECK(base::is_pty_master(job.fds[2].borrow()));
  }
}

TEST_CASE("a terminal that is handed over travels, others do not", "[routerd]") {
  const support::FdLeakCheck leaks;
  Request job(TtyMode::hand_over);
  CHECK(job.settle(Terminals::automatic) == kOthers);
  CHECK(job.request.tty == TtyMode::hand_over);
  CHECK(job.request.terminal_fds.empty());
  CHECK(job.request.fd_numbers == Numbers{0, 1, 2, 5, 7});
  CHECK(job.is_own(0));
  CHECK(job.is_own(3));
  CHECK(support::name_of_fd(job.fds[2].borrow()) == "/dev/null");
}

TEST_CASE("tty: relay hands nothing over", "[routerd]") {
  Request job(TtyMode::hand_over);
  CHECK(job.settle(Terminals::relay) == kOthers);
  CHECK(job.request.tty == TtyMode::fresh);
  CHECK(job.request.terminal_fds == Numbers{0, 5});
}

TEST_CASE("tty: share passes every terminal as it is", "[routerd]") {
  for (const auto asked : {TtyMode::none, TtyMode::fresh, TtyMode::hand_over}) {
    Request job(asked);
    CHECK(job.settle(Terminals::share).empty());
    CHECK(job.request.fd_numbers == Numbers{0, 1, 2, 5, 6, 7});
    CHECK(job.request.tty == (asked == TtyMode::hand_over ? asked : TtyMode::none));
    CHECK(job.is_own(0));
  }
}

TEST_CASE("terminals nobody speaks of are refused", "[routerd]") {
  const support::FdLeakCheck leaks;
  Request job(TtyMode::none);
  CHECK(
      job.settle(Terminals::automatic) ==
      std::vector<std::string>{"0: a terminal", "2: a terminal", "5: a terminal", "6: a terminal"});
  CHECK(job.request.tty == TtyMode::none);
  CHECK(job.request.fd_numbers == Numbers{0, 1, 2, 7});
  CHECK(support::name_of_fd(job.fds[0].borrow()) == "/dev/null");
}

TEST_CASE("what is no terminal is neither handed over nor relayed to", "[routerd]") {
  for (const auto asked : {TtyMode::fresh, TtyMode::hand_over}) {
    for (const std::uint32_t number : {1u, 7u, 99u}) {
      CAPTURE(number);
      Request job(asked);
      job.request.tty_fd = number;
      job.settle(Terminals::automatic);
      const bool is_master = number == 7;  // no program's terminal
      CHECK(job.request.tty == TtyMode::none);
      CHECK(job.request.terminal_fds.empty());
      CHECK((is_master || !job.is_own(0)));
    }
  }
}

TEST_CASE("a terminal can be asked for without having one", "[routerd]") {
  wire::ExecRequest request;
  std::vector<base::UniqueFd> fds;
  request.tty = TtyMode::fresh;
  request.terminal_fds = {0, 1, 2};
  CHECK(routerd::settle_terminals(Terminals::automatic, request, fds).empty());
  CHECK(request.tty == TtyMode::fresh);
  CHECK(request.terminal_fds == Numbers{0, 1, 2});
}
