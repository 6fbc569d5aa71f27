#include "wire/requester.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"
#include "wire/codec.h"

namespace {

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

/// The state a child captures after `change`.
wire::ProcessState state_after(void (*change)()) {
  const std::string bytes = support::text_of_child([change]() -> std::string {
    change();
    wire::ExecRequest request;
    request.state = wire::capture_process_state();
    return wire::encode(request);
  });
  return support::value_of(wire::decode<wire::ExecRequest>(bytes)).state;
}

}  // namespace

TEST_CASE("connect_to reaches a listener of our own user, close-on-exec", "[wire]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const auto listener = support::listen_at(folder / "s");
  const auto connected = wire::connect_to(folder / "s");
  REQUIRE(connected);
  CHECK((::fcntl(connected->borrow(), F_GETFD) & FD_CLOEXEC) != 0);
  const base::UniqueFd accepted(::accept4(listener.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(::send(connected->borrow(), "x", 1, MSG_NOSIGNAL) == 1);
  CHECK(support::read_byte(accepted.borrow()) == 'x');
}

TEST_CASE("connect_to tells why nobody can be reached", "[wire]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  CHECK(wire::connect_to(folder / "missing").error().code == ENOENT);
  const auto stale = support::listen_at(folder / "stale", false);
  CHECK(wire::connect_to(folder / "stale").error().code == ECONNREFUSED);
  const auto missing = wire::connect_to(folder / "missing");
  CHECK(missing.error().operation == "connect " + (folder / "missing"));
}

TEST_CASE("connect_to takes paths up to the size of sun_path", "[wire]") {
  const support::TempDir folder;
  const std::string longest = folder / std::string(107 - folder.path().size() - 1, 'x');
  REQUIRE(longest.size() == 107);
  const auto listener = support::listen_at(longest);
  CHECK(wire::connect_to(longest));
  CHECK(wire::connect_to(longest + "x").error().code == ENAMETOOLONG);
}

TEST_CASE("connect_to speaks to nobody but root and ourselves", "[wire][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  auto ready = support::make_pipe();
  support::Child squatter([&] {
    if (::setresuid(1000, 1000, 1000) != 0) return 1;
    const auto listener = support::listen_at(folder / "s");
    if (!base::write_all(ready.write.borrow(), "r")) return 2;
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(support::read_byte(ready.read.borrow()) == 'r');
  const auto connected = wire::connect_to(folder / "s");
  REQUIRE_FALSE(connected);
  CHECK(connected.error().code == EPERM);
  CHECK(connected.error().detail == "uid 1000 listens there");

  SECTION("the same listener is fine for its own user") {
    CHECK(support::text_of_child_as(1000, [&] {
            return wire::connect_to(folder / "s") ? "connected" : "refused";
          }) == "connected");
  }
}

TEST_CASE("connect_to lets a user reach root's listener", "[wire][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  const auto listener = support::listen_at(folder / "s");
  CHECK(support::text_of_child_as(1000, [&] {
          return wire::connect_to(folder / "s") ? "connected" : "refused";
        }) == "connected");
}

TEST_CASE("capture sees the umask and leaves it", "[wire]") {
  const auto state = state_after([] { ::umask(0137); });
  CHECK(state.umask == 0137);
  const mode_t before = ::umask(022);
  (void)wire::capture_process_state();
  CHECK(::umask(before) == 022);
}

TEST_CASE("capture sees ignored, blocked and pending signals", "[wire]") {
  const auto state = state_after([] {
    for (int signal = 1; signal <= 64; ++signal) ::signal(signal, SIG_DFL);
    ::signal(SIGUSR1, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGRTMAX, SIG_IGN);
    ::signal(SIGINT, [](int) {});
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    ::kill(::getpid(), SIGUSR2);
  });
  CHECK(state.ignored_signals == (bit(SIGUSR1) | bit(SIGPIPE) | bit(SIGRTMAX)));
  CHECK(state.blocked_signals == (bit(SIGUSR2) | bit(SIGTERM)));
  CHECK(state.pending_signals == bit(SIGUSR2));
}

TEST_CASE("capture sees nice, limits, personality and affinity", "[wire]") {
  const auto state = state_after([] {
    ::setpriority(PRIO_PROCESS, 0, 7);
    const rlimit files{123, 456};
    ::setrlimit(RLIMIT_NOFILE, &files);
    ::personality(ADDR_NO_RANDOMIZE);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    ::sched_setaffinity(0, sizeof first, &first);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  });
  CHECK(state.nice == 7);
  REQUIRE(state.rlimits.size() == RLIM_NLIMITS);
  CHECK(state.rlimits[RLIMIT_NOFILE] == wire::Rlimit{RLIMIT_NOFILE, 123, 456});
  CHECK((state.personality & ADDR_NO_RANDOMIZE) != 0);
  REQUIRE_FALSE(state.affinity.empty());
  CHECK(state.affinity[0] == 1);
  CHECK(state.affinity.find_first_not_of('\0', 1) == std::string::npos);
  CHECK(state.no_new_privs);
}

TEST_CASE("capture sees attributes and timers", "[wire]") {
  const auto plain = state_after([] {});
  CHECK(plain.oom_score_adj != wire::ProcessState::kUnset);
  CHECK_FALSE(plain.child_subreaper);
  CHECK(plain.scheduler == SCHED_OTHER);
  CHECK(plain.timers.empty());
  const auto state = state_after([] {
    (void)base::write_file("/proc/self/oom_score_adj", "321", 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
    ::prctl(PR_SET_TIMERSLACK, 12345);
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_BATCH, &none);
    ::alarm(1000);
    const itimerval profile{{5, 0}, {2000, 0}};
    ::setitimer(ITIMER_PROF, &profile, nullptr);
  });
  CHECK(state.oom_score_adj == 321);
  CHECK(state.child_subreaper);
  CHECK(state.parent_death_signal == SIGUSR1);
  CHECK(state.timer_slack_ns == 12345);
  CHECK(state.scheduler == SCHED_BATCH);
  REQUIRE(state.timers.size() == 2);
  CHECK(state.timers[0].which == ITIMER_REAL);
  CHECK(state.timers[0].value_us > 900'000'000);
  CHECK(state.timers[0].interval_us == 0);
  CHECK(state.timers[1].which == ITIMER_PROF);
  CHECK(state.timers[1].interval_us == 5'000'000);
}

TEST_CASE("capture sees who leads a group or a session", "[wire]") {
  const auto plain = state_after([] {});
  CHECK_FALSE(plain.group_leader);
  CHECK_FALSE(plain.session_leader);
  CHECK_FALSE(plain.no_new_privs);
  const auto group = state_after([] { ::setpgid(0, 0); });
  CHECK(group.group_leader);
  CHECK_FALSE(group.session_leader);
  const auto session = state_after([] { ::setsid(); });
  CHECK(session.group_leader);
  CHECK(session.session_leader);
}
