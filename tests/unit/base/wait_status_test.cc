#include "base/wait_status.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/support/child.h"

using base::WaitStatus;

TEST_CASE("exit code, term signal and stop signal exclude each other", "[base]") {
  const auto exited = WaitStatus::from_exit_code(7);
  CHECK(exited.exit_code() == 7);
  CHECK_FALSE(exited.term_signal());
  CHECK_FALSE(exited.stop_signal());
  CHECK_FALSE(exited.is_continued());

  const auto killed = WaitStatus::from_signal(SIGTERM);
  CHECK(killed.term_signal() == SIGTERM);
  CHECK_FALSE(killed.exit_code());
  CHECK_FALSE(killed.stop_signal());
  CHECK_FALSE(killed.is_continued());
}

TEST_CASE("a default WaitStatus is a success", "[base]") {
  CHECK(WaitStatus().exit_code() == 0);
  CHECK(WaitStatus().raw() == 0);
}

TEST_CASE("exit codes wrap to eight bits as those of a process do", "[base]") {
  CHECK(WaitStatus::from_exit_code(256).exit_code() == 0);
  CHECK(WaitStatus::from_exit_code(-1).exit_code() == 255);
}

TEST_CASE("wait statuses are what the kernel makes", "[base]") {
  support::Child exits([] { return 42; });
  CHECK(exits.wait().raw() == WaitStatus::from_exit_code(42).raw());

  support::Child waits([] {
    for (;;) ::pause();
    return 0;
  });
  waits.kill(SIGSTOP);
  const auto stopped = waits.wait_stopped();
  CHECK(stopped.stop_signal() == SIGSTOP);
  CHECK_FALSE(stopped.exit_code());
  CHECK_FALSE(stopped.term_signal());
  waits.kill(SIGKILL);
  CHECK(waits.wait().raw() == WaitStatus::from_signal(SIGKILL).raw());
}

TEST_CASE("a status with a core dump names its signal", "[base]") {
  CHECK(WaitStatus(SIGSEGV | 0x80).term_signal() == SIGSEGV);
}

TEST_CASE("the status of a continued process is nothing else", "[base]") {
  const WaitStatus continued(0xffff);
  CHECK(continued.is_continued());
  CHECK_FALSE(continued.exit_code());
  CHECK_FALSE(continued.term_signal());
  CHECK_FALSE(continued.stop_signal());
}
