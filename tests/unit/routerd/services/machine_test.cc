#include "routerd/services/machine.h"

#include <catch2/catch.hpp>

using namespace routerd::services;
using namespace std::chrono_literals;

namespace {

using Actions = std::vector<Action>;

const End kCrash{false, "killed by SIGSEGV"};
const End kDone{true, "exit code 0"};

ServiceSpec usual() {
  ServiceSpec spec;
  spec.ready.kind = Probe::Kind::accept;
  spec.ready.timeout = 60s;
  spec.restart_delay = 100ms;
  spec.max_restart_delay = 1s;
  spec.stop_timeout = 10s;
  return spec;
}

/// A machine and the clock it is told.
struct Life {
  explicit Life(const ServiceSpec& spec = usual()) : machine(spec) {}

  void start() { machine.start(now); }
  void become_ready() { machine.became_ready(now); }
  void end(const End& how = kCrash) { machine.ended(now, how); }
  /// Lets time pass up to the deadline.
  milliseconds expire() {
    REQUIRE(machine.deadline());
    const auto wait = std::chrono::duration_cast<milliseconds>(*machine.deadline() - now);
    now = *machine.deadline();
    machine.expired(now);
    return wait;
  }
  Actions actions() { return machine.take_actions(); }

  Machine::Time now{1h};
  Machine machine;
};

}  // namespace

TEST_CASE("a service starts, becomes ready and stops", "[services]") {
  Life life;
  CHECK(life.machine.state() == State::stopped);
  life.start();
  CHECK(life.actions() == Actions{Action::spawn});
  CHECK(life.machine.state() == State::starting);
  life.become_ready();
  CHECK(life.machine.state() == State::ready);
  CHECK_FALSE(life.machine.deadline());
  life.machine.stop(life.now);
  CHECK(life.actions() == Actions{Action::ask_to_stop});
  CHECK(life.machine.state() == State::stopping);
  life.end(kDone);
  CHECK(life.machine.state() == State::stopped);
  CHECK(life.actions().empty());
  CHECK_FALSE(life.machine.deadline());
  CHECK(life.machine.failures() == 0);
}

TEST_CASE("the first death is followed by a start at once, later ones by longer and longer waits",
          "[services]") {
  Life life;
  life.start();
  life.end();
  CHECK(life.actions() == Actions{Action::spawn, Action::spawn});
  for (const auto expected : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    life.end();
    CHECK(life.machine.state() == State::waiting);
    CHECK(life.actions().empty());
    CHECK(life.expire() == expected);
    CHECK(life.actions() == Actions{Action::spawn});
  }
  CHECK(life.machine.failures() == 7);
  CHECK(life.machine.restarts() == 7);
  CHECK(life.machine.last_end() == "killed by SIGSEGV");
}

TEST_CASE("five deaths in a row are a crash loop, and a good time ends it", "[services]") {
  Life life;
  life.start();
  for (int i = 0; i < 4; ++i) {
    life.end();
    if (life.machine.deadline()) life.expire();
    CHECK_FALSE(life.machine.is_crash_looping());
  }
  life.end();
  CHECK(life.machine.is_crash_looping());
  life.expire();
  life.become_ready();
  CHECK(life.machine.is_crash_looping());  // not yet proven

  SECTION("it was ready for long enough") {
    life.now += Machine::kStableAfter;
    life.end();
    CHECK(life.machine.failures() == 1);
    CHECK(life.machine.state() == State::starting);
  }
  SECTION("it was not") {
    life.now += Machine::kStableAfter - 1ms;
    life.end();
    CHECK(life.machine.failures() == 6);
    CHECK(life.machine.state() == State::waiting);
  }
}

TEST_CASE("a service that ignores its stop signal is killed", "[services]") {
  Life life;
  life.start();
  life.become_ready();
  life.machine.stop(life.now);
  life.actions();
  CHECK(life.expire() == 10s);
  CHECK(life.actions() == Actions{Action::kill});
  CHECK(life.machine.state() == State::stopping);
  CHECK_FALSE(life.machine.deadline());
  life.end({false, "killed by SIGKILL"});
  CHECK(life.machine.state() == State::stopped);
}

TEST_CASE("a service that does not become ready is stopped, and that is a failure", "[services]") {
  Life life;
  life.start();
  life.actions();
  CHECK(life.expire() == 60s);
  CHECK(life.actions() == Actions{Action::ask_to_stop});
  life.expire();
  CHECK(life.actions() == Actions{Action::kill});
  life.end(kDone);
  CHECK(life.machine.failures() == 1);
  CHECK(life.machine.last_end() == "not ready in time, then exit code 0");
  CHECK(life.actions() == Actions{Action::spawn});
}

TEST_CASE("without a probe nothing has to be ready in time", "[services]") {
  auto spec = usual();
  spec.ready.kind = Probe::Kind::none;
  Life life(spec);
  life.start();
  CHECK_FALSE(life.machine.deadline());
}

TEST_CASE("a restart stops first, and forgets the failures", "[services]") {
  Life life;
  life.start();
  life.end();
  life.actions();
  CHECK(life.machine.failures() == 1);
  life.machine.restart(life.now);
  CHECK(life.actions() == Actions{Action::ask_to_stop});
  CHECK(life.machine.failures() == 0);
  life.end(kDone);
  CHECK(life.actions() == Actions{Action::spawn});
  CHECK(life.machine.failures() == 0);

  SECTION("of what waits it is a start at once") {
    life.end();
    life.end();
    REQUIRE(life.machine.state() == State::waiting);
    life.actions();
    life.machine.restart(life.now);
    CHECK(life.actions() == Actions{Action::spawn});
  }
  SECTION("an order to stop meanwhile wins") {
    life.machine.restart(life.now);
    life.machine.stop(life.now);
    life.end(kDone);
    CHECK(life.machine.state() == State::stopped);
  }
}

TEST_CASE("what waits for its next start can be stopped", "[services]") {
  Life life;
  life.start();
  life.end();
  life.end();
  REQUIRE(life.machine.state() == State::waiting);
  life.machine.stop(life.now);
  CHECK(life.machine.state() == State::stopped);
  CHECK_FALSE(life.machine.deadline());
  life.now += 1h;
  life.machine.expired(life.now);
  CHECK(life.machine.state() == State::stopped);
}

TEST_CASE("the restart policy decides about what ends by itself", "[services]") {
  struct Row {
    Restart policy;
    End end;
    State after;
  };
  const auto row = GENERATE(
      Row{Restart::always, kDone, State::starting}, Row{Restart::always, kCrash, State::starting},
      Row{Restart::on_failure, kDone, State::stopped},
      Row{Restart::on_failure, kCrash, State::starting}, Row{Restart::never, kDone, State::stopped},
      Row{Restart::never, kCrash, State::failed});
  auto spec = usual();
  spec.restart = row.policy;
  Life life(spec);
  life.start();
  life.become_ready();
  life.end(row.end);
  CHECK(life.machine.state() == row.after);
}

TEST_CASE("events that come too late change nothing", "[services]") {
  Life life;
  life.end();
  life.become_ready();
  life.machine.expired(life.now);
  CHECK(life.machine.state() == State::stopped);
  CHECK(life.actions().empty());
  CHECK(life.machine.failures() == 0);
  life.start();
  life.machine.expired(life.now);  // before its deadline: a timer that was moved
  CHECK(life.machine.state() == State::starting);
  life.start();  // runs already
  CHECK(life.actions() == Actions{Action::spawn});
}
