// wire::attend, in a fork (it blocks the signals of its whole process), with this test as the peer.

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <type_traits>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "wire/channel.h"
#include "wire/limits.h"
#include "wire/requester.h"

namespace {

std::string text_of(const wire::Outcome& outcome) {
  return std::visit(
      [](const auto& end) -> std::string {
        using End = std::decay_t<decltype(end)>;
        if constexpr (std::is_same_v<End, wire::Exited>) {
          return "exited " + std::to_string(end.wait_status) + (end.timed_out ? " timed out" : "");
        } else if constexpr (std::is_same_v<End, wire::NotStarted>) {
          return "not started " + std::to_string(end.exit_code) + " " + end.message;
        } else if constexpr (std::is_same_v<End, wire::RunHere>) {
          return "run here " + end.path + " " + std::to_string(end.env.count());
        } else {
          return std::string("lost ") + (end.started ? "after" : "before") + " the start";
        }
      },
      outcome);
}

/// A requester in a process of its own. It writes 'h' to its pipe when it holds its signals, 's'
/// when on_started is called, and at the end the outcome.
class Requester {
 public:
  explicit Requester(wire::AttendOptions options = {}, bool is_orphaned = false)
      : child_([this, options, is_orphaned]() mutable {
          pair_.ours.reset();
          // A group of its own in its parent's session is not orphaned, so terminal stops work
          // (setpgid(2)); in a session of its own it is.
          is_orphaned ? ::setsid() : ::setpgid(0, 0);
          options.on_started = [](void* pipe) {
            (void)base::write_all(static_cast<support::Pipe*>(pipe)->write.borrow(), "s");
          };
          options.argument = &pipe_;
          options.blocked_before = wire::hold_signals();
          (void)base::write_all(pipe_.write.borrow(), "h");
          const auto outcome = wire::attend(pair_.theirs.borrow(), options);
          return base::write_all(pipe_.write.borrow(), text_of(outcome)) ? 0 : 1;
        }) {
    pair_.theirs.reset();
    pipe_.write.reset();
    REQUIRE(support::read_byte(pipe_.read.borrow()) == 'h');
  }

  support::Child& process() { return child_; }
  template <class Message>
  void send(const Message& message) {
    REQUIRE(wire::send_message(pair_.ours.borrow(), message));
  }
  void send_bytes(const std::string& bytes) { support::send_raw(pair_.ours.borrow(), bytes); }
  void hang_up() { pair_.ours.reset(); }

  void start() {
    send(wire::Started{17, 3});
    REQUIRE(support::read_byte(pipe_.read.borrow()) == 's');
  }
  std::string outcome() {
    std::string text = support::read_to_end(pipe_.read.borrow());
    CHECK(child_.wait().exit_code() == 0);
    return text;
  }
  wire::Signal next_signal() {
    REQUIRE(support::await_readable(pair_.ours.borrow()));
    auto frame = receiver_.receive(pair_.ours.borrow());
    REQUIRE((frame && *frame));
    return wire::decode<wire::Signal>((*frame)->payload).value();
  }
  bool has_message() { return support::await_readable(pair_.ours.borrow(), 0); }

 private:
  support::SocketPair pair_ = support::stream_pair();
  support::Pipe pipe_ = support::make_pipe();
  wire::Receiver receiver_;
  support::Child child_;
};

}  // namespace

TEST_CASE("attend returns how the program exited", "[wire]") {
  const support::FdLeakCheck leaks;
  Requester requester;
  requester.start();
  requester.send(wire::Exited{0x0900, 1, 2, 3, true, {}});
  CHECK(requester.outcome() == "exited 2304 timed out");
}

TEST_CASE("attend takes an exit that comes together with the start", "[wire]") {
  Requester requester;
  requester.send(wire::Started{17, 3});
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "sexited 0");
}

TEST_CASE("attend returns why nothing was started", "[wire]") {
  Requester requester;
  requester.send(wire::NotStarted{127, ENOENT, "x: not found"});
  CHECK(requester.outcome() == "not started 127 x: not found");
}

TEST_CASE("attend returns a failure that shows only after the start", "[wire]") {
  Requester requester;
  requester.start();
  requester.send(wire::NotStarted{126, EACCES, "x: no"});
  CHECK(requester.outcome() == "not started 126 x: no");
}

TEST_CASE("attend returns an order to run here", "[wire]") {
  Requester requester;
  requester.send(wire::RunHere{"/usr/bin/node", {"A=1", "B=2"}});
  CHECK(requester.outcome() == "run here /usr/bin/node 2");
}

TEST_CASE("attend knows whether the connection broke before or after the start", "[wire]") {
  const bool is_started = GENERATE(false, true);
  Requester requester;
  if (is_started) requester.start();
  requester.hang_up();
  CHECK(requester.outcome() == (is_started ? "lost after the start" : "lost before the start"));
}

TEST_CASE("attend takes what breaks the protocol for a broken connection", "[wire]") {
  const bool is_started = GENERATE(false, true);
  const int what = GENERATE(0, 1, 2);
  CAPTURE(is_started, what);
  Requester requester;
  if (is_started) requester.start();
  if (what == 0) requester.send(wire::ListJobs{1});
  if (what == 1) requester.send_bytes("garbage, not a frame");
  if (what == 2) {
    requester.send_bytes(wire::encode_header({.length = 3,
                                              .type = wire::MessageType::exited,
                                              .version = wire::kVersion,
                                              .fd_count = 0}) +
                         "abc");
  }
  CHECK(requester.outcome() == (is_started ? "lost after the start" : "lost before the start"));
}

TEST_CASE("attend forwards every kind of signal to the group", "[wire]") {
  const int signal = GENERATE(SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGWINCH, SIGCONT, SIGSEGV,
                              32, 33, SIGRTMIN, SIGRTMAX);
  CAPTURE(signal);
  if ((signal == 32 || signal == 33) && support::lacks_libc_signals()) return;
  Requester requester;
  requester.start();
  requester.process().kill(signal);
  const auto forwarded = requester.next_signal();
  CHECK(forwarded.signal == signal);
  CHECK(forwarded.scope == wire::KillScope::group);
  requester.send(wire::Exited{signal, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited " + std::to_string(signal));
}

TEST_CASE("a signal that travelled in the request is not forwarded again", "[wire]") {
  Requester requester({.already_sent = std::uint64_t{1} << (SIGUSR1 - 1)});
  requester.start();
  requester.process().kill(SIGUSR1);
  requester.process().kill(SIGUSR2);
  CHECK(requester.next_signal().signal == SIGUSR2);
  requester.process().kill(SIGUSR1);
  CHECK(requester.next_signal().signal == SIGUSR1);
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 0");
}

TEST_CASE("a signal before the start is kept for the program", "[wire]") {
  Requester requester;
  requester.process().kill(SIGTERM);
  requester.start();
  CHECK(requester.next_signal().signal == SIGTERM);
  requester.send(wire::Exited{SIGTERM, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 15");
}

TEST_CASE("a signal before the start does not hide that nothing was started", "[wire]") {
  Requester requester;
  requester.process().kill(SIGTERM);
  requester.send(wire::NotStarted{127, ENOENT, "x: not found"});
  CHECK(requester.outcome() == "not started 127 x: not found");
}

TEST_CASE("a router that says nothing cannot make its requesters unkillable", "[wire]") {
  Requester requester;
  requester.process().kill(SIGTERM);
  CHECK(requester.process().wait().term_signal() == SIGTERM);
}

TEST_CASE("hold_signals blocks all signals and tells which were blocked", "[wire]") {
  const std::string text = support::text_of_child([]() -> std::string {
    const std::uint64_t some = std::uint64_t{1} << (SIGUSR1 - 1);
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &some, nullptr, sizeof some);
    if (wire::hold_signals() != some) return "not what was blocked";
    // SIGKILL and SIGSTOP cannot be.
    constexpr std::uint64_t kNever = std::uint64_t{1} << (SIGKILL - 1) | std::uint64_t{1}
                                                                             << (SIGSTOP - 1);
    return wire::hold_signals() == ~kNever ? "all" : "not all";
  });
  CHECK(text == "all");
}

TEST_CASE("attend stops when the program stops, and both go on together", "[wire]") {
  const int signal = GENERATE(SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU);
  CAPTURE(signal);
  Requester requester;
  requester.start();
  requester.send(wire::Stopped{signal});
  CHECK(requester.process().wait_stopped().stop_signal() == signal);
  CHECK_FALSE(requester.has_message());
  requester.process().kill(SIGCONT);
  CHECK(requester.next_signal().signal == SIGCONT);
  requester.send(wire::Continued{});
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 0");
}

TEST_CASE("a program goes on when its requester cannot stop with it", "[wire]") {
  const int signal = GENERATE(SIGTSTP, SIGTTIN, SIGTTOU);
  CAPTURE(signal);
  Requester requester({}, true);
  requester.start();
  requester.send(wire::Stopped{signal});
  CHECK(requester.next_signal().signal == SIGCONT);
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 0");
}

TEST_CASE("attend does not stop a second time for a stop that it has told of itself", "[wire]") {
  Requester requester({.on_stopped = [](void*, int signal) { return signal != SIGSTOP; }});
  requester.start();
  requester.send(wire::Stopped{SIGSTOP});
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 0");
}

TEST_CASE("attend does not stop when it is told not to mirror stops", "[wire]") {
  Requester requester({.mirror_stops = false});
  requester.start();
  requester.send(wire::Stopped{SIGSTOP});
  requester.send(wire::Exited{0, 0, 0, 0, false, {}});
  CHECK(requester.outcome() == "exited 0");
}
