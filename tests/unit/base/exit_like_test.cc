#include "base/exit_like.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>

#include "tests/support/child.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using base::WaitStatus;

namespace {

/// Signals whose default action is the end of the process.
bool can_be_died_of(int signal) {
  static const std::set<int> others = {SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP,
                                       SIGTTIN, SIGTTOU, SIGURG,  SIGWINCH};
  return !others.contains(signal);
}

/// sigaddset(3) refuses glibc's own.
bool is_libcs_own(int signal) { return signal == 32 || signal == 33; }

/// As attend() and a stub's parent may leave it: everything blocked, also what libc keeps to
/// itself, and ignored.
void ignore_and_block_all() {
  for (int signal = 1; signal <= 64; ++signal) ::signal(signal, SIG_IGN);
  const std::uint64_t all = ~std::uint64_t{0};
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
}

int end_of(int signal) {
  support::Child child([signal]() -> int {
    ignore_and_block_all();
    base::exit_like(WaitStatus::from_signal(signal));
  });
  return child.wait().raw();
}

}  // namespace

TEST_CASE("exit_like ends with each of the 256 exit codes", "[base]") {
  for (int code = 0; code < 256; ++code) {
    support::Child child([code]() -> int { base::exit_like(WaitStatus::from_exit_code(code)); });
    REQUIRE(child.wait().raw() == WaitStatus::from_exit_code(code).raw());
  }
}

TEST_CASE("exit_like dies of every terminating signal, ignored and blocked before", "[base]") {
  for (int signal = 1; signal <= 64; ++signal) {
    if (!can_be_died_of(signal) || is_libcs_own(signal)) continue;
    INFO("signal " << signal);
    CHECK(end_of(signal) == WaitStatus::from_signal(signal).raw());
  }
}

TEST_CASE("exit_like dies of the signals that libc keeps to itself", "[base]") {
  if (support::lacks_libc_signals()) return;
  // 32 and 33 in glibc, 32 to 34 in musl, which the stub is linked with: 34 is others' SIGRTMIN.
  for (const int signal : {32, 33}) CHECK(end_of(signal) == signal);
}

TEST_CASE("exit_like leaves no core dump", "[base]") {
  const support::TempDir folder;
  const auto die = [&folder](bool like) {
    support::Child child([&folder, like]() -> int {
      if (::chdir(folder.path().c_str()) != 0) return 1;
      const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
      ::setrlimit(RLIMIT_CORE, &all);
      if (like) base::exit_like(WaitStatus(SIGSEGV | 0x80));
      ::signal(SIGSEGV, SIG_DFL);
      ::kill(::getpid(), SIGSEGV);
      return 1;
    });
    return child.wait().raw();
  };
  CHECK(die(true) == SIGSEGV);
  const int without = die(false);
  if (without == SIGSEGV) WARN("not shown: this machine dumps no cores at all");
}

TEST_CASE("exit_like of what is no end at all gives 125", "[base]") {
  support::Child stopped([]() -> int { base::exit_like(WaitStatus(SIGSTOP << 8 | 0x7f)); });
  CHECK(stopped.wait().exit_code() == 125);
}

TEST_CASE("exit_like of a signal nobody dies of gives 128 and its number", "[base]") {
  const int signal = GENERATE(SIGCHLD, SIGWINCH, SIGURG);
  support::Child child([signal]() -> int { base::exit_like(WaitStatus::from_signal(signal)); });
  CHECK(child.wait().exit_code() == 128 + signal);
}
