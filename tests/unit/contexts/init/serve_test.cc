// The life of a job at its init: signals, stops, disconnects, limits, listing.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "base/wait_status.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"
#include "wire/limits.h"

using contexts::Tier;
using support::TestContext;

namespace {

/// A shell that is ready for signals when it has written a byte to 3.
support::Job start_ready(TestContext& context, const std::string& script, support::Pipe& pipe,
                         const std::function<void(wire::ExecRequest&)>& change = {}) {
  auto request = TestContext::shell(script);
  if (change) change(request);
  auto job = context.start(std::move(request), {{pipe.write.borrow(), 3}});
  pipe.write.reset();
  job.expect<wire::Started>();
  if (support::read_byte(pipe.read.borrow()) != 'r') throw std::runtime_error("not ready");
  return job;
}

/// Ready when its child is there too.
constexpr const char* kSleep = "(printf r >&3; exec sleep 1000) & wait";

}  // namespace

TEST_CASE("a started program is announced with its job and pid", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto job = context.start(TestContext::shell("echo $$ >&3"), {{pipe.write.borrow(), 3}});
  pipe.write.reset();
  const auto started = job.expect<wire::Started>();
  CHECK(started.job == job.id());
  CHECK(support::read_to_end(pipe.read.borrow()) == std::to_string(started.pid) + "\n");
  job.expect<wire::Exited>();
  CHECK(job.is_closed_by_init());
}

TEST_CASE("signals reach the program's whole group, or the program alone", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  SECTION("the group") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, kSleep, pipe);
    job.send(wire::Signal{SIGTERM, wire::KillScope::group});
    CHECK(job.expect<wire::Exited>().wait_status == SIGTERM);
    support::await_end_of_file(pipe.read.borrow());  // the sleep held it too
  }
  SECTION("the program") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, kSleep, pipe);
    job.send(wire::Signal{SIGTERM, wire::KillScope::process});
    CHECK(job.expect<wire::Exited>().wait_status == SIGTERM);
    CHECK_FALSE(support::await_readable(pipe.read.borrow(), 0));
  }
  SECTION("a trap sees the number that was sent") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, std::string("trap 'exit 42' USR1; ") + kSleep, pipe);
    job.send(wire::Signal{SIGUSR1, wire::KillScope::process});
    CHECK(job.expect<wire::Exited>().wait_status == 42 << 8);
  }
}

TEST_CASE("a signal that comes before the program runs meets its dispositions",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  for (int i = 0; i < 50; ++i) {
    auto request = TestContext::request({"/bin/true"});
    request.state.ignored_signals = std::uint64_t{1} << (SIGTERM - 1);
    auto job = context.start_with_signal(std::move(request), wire::Signal{SIGTERM});
    job.expect<wire::Started>();
    REQUIRE(job.expect<wire::Exited>().wait_status == 0);
  }
}

TEST_CASE("numbers that are no signals are ignored", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto job = start_ready(context, kSleep, pipe);
  for (const int signal : {0, -1, 65, INT32_MAX, INT32_MIN}) job.send(wire::Signal{signal});
  job.send(wire::Resize{});
  job.send(wire::Signal{SIGKILL});
  CHECK(job.expect<wire::Exited>().wait_status == SIGKILL);
}

TEST_CASE("a stop and its end are reported", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const int signal = GENERATE(SIGSTOP, SIGTSTP, SIGTTIN);
  auto pipe = support::make_pipe();
  auto job = start_ready(context, kSleep, pipe);
  job.send(wire::Signal{signal});
  CHECK(job.expect<wire::Stopped>().signal == signal);
  job.send(wire::Signal{SIGCONT});
  job.expect<wire::Continued>();
  job.send(wire::Signal{SIGTERM});
  CHECK(job.expect<wire::Exited>().wait_status == SIGTERM);
}

TEST_CASE("a requester that goes away takes the group with it", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(Tier::namespaces);
  SECTION("of a running program") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, kSleep, pipe);
    job.disconnect();
    support::await_end_of_file(pipe.read.borrow());
  }
  SECTION("of a stopped one that ignores other signals") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, std::string("trap '' HUP TERM INT; ") + kSleep, pipe);
    job.send(wire::Signal{SIGSTOP});
    job.expect<wire::Stopped>();
    job.disconnect();
    support::await_end_of_file(pipe.read.borrow());
  }
  SECTION("right after the request") {
    auto pipe = support::make_pipe();
    auto job = context.start(TestContext::shell(kSleep), {{pipe.write.borrow(), 3}});
    pipe.write.reset();
    job.disconnect();
    // The program may have become ready before.
    while (support::await_readable(pipe.read.borrow())) {
      char byte = 0;
      if (::read(pipe.read.borrow(), &byte, 1) <= 0) break;
    }
    context.await_no_jobs();
  }
}

TEST_CASE("a requester that goes away can kill the program alone", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto gate = support::make_pipe();
  auto request = TestContext::shell("sh -c 'printf r >&3; read line <&4; printf s >&3' & wait");
  request.on_stub_kill = wire::KillScope::process;
  auto job = context.start(std::move(request), {{pipe.write.borrow(), 3}, {gate.read.borrow(), 4}});
  pipe.write.reset();
  job.expect<wire::Started>();
  REQUIRE(support::read_byte(pipe.read.borrow()) == 'r');
  job.disconnect();
  context.await_no_jobs();
  gate.write.reset();
  CHECK(support::read_byte(pipe.read.borrow()) == 's');
}

TEST_CASE("a program that is to be kept outlives its requester", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto release = support::make_pipe();
  auto request = TestContext::shell("printf r >&3; read line <&4; printf k >&3");
  request.on_disconnect = wire::OnDisconnect::keep;
  auto job =
      context.start(std::move(request), {{pipe.write.borrow(), 3}, {release.read.borrow(), 4}});
  pipe.write.reset();
  job.expect<wire::Started>();
  REQUIRE(support::read_byte(pipe.read.borrow()) == 'r');
  job.disconnect();
  REQUIRE(context.list_jobs().jobs.size() == 1);
  release.write.reset();
  CHECK(support::read_byte(pipe.read.borrow()) == 'k');
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a requester that breaks the protocol is treated as gone", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto job = start_ready(context, kSleep, pipe);
  support::send_raw(job.connection(), "this is not a frame at all");
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a time limit ends a program, with its grace if it does not obey", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  SECTION("SIGTERM is enough") {
    auto pipe = support::make_pipe();
    auto job = start_ready(context, kSleep, pipe,
                           [](auto& request) { request.policy.time_limit_ms = 150; });
    const auto exited = job.expect<wire::Exited>();
    CHECK(exited.wait_status == SIGTERM);
    CHECK(exited.timed_out);
    support::await_end_of_file(pipe.read.borrow());
  }
  SECTION("SIGKILL follows") {
    auto pipe = support::make_pipe();
    auto job =
        start_ready(context, std::string("trap '' TERM; ") + kSleep, pipe, [](auto& request) {
          request.policy.time_limit_ms = 150;
          request.policy.kill_grace_ms = 100;
        });
    const auto exited = job.expect<wire::Exited>();
    CHECK(exited.wait_status == SIGKILL);
    CHECK(exited.timed_out);
    support::await_end_of_file(pipe.read.borrow());
  }
  SECTION("a program that ends in time is not timed out") {
    auto request = TestContext::shell("exit 3");
    request.policy.time_limit_ms = 60'000;
    const auto exited = context.run(std::move(request)).exited;
    CHECK(exited.wait_status == 3 << 8);
    CHECK_FALSE(exited.timed_out);
  }
  SECTION("the earliest of several limits counts") {
    auto late = support::make_pipe();
    auto early = support::make_pipe();
    auto late_job = start_ready(context, kSleep, late,
                                [](auto& request) { request.policy.time_limit_ms = 60'000; });
    auto early_job = start_ready(context, kSleep, early,
                                 [](auto& request) { request.policy.time_limit_ms = 150; });
    CHECK(early_job.expect<wire::Exited>().timed_out);
    CHECK_FALSE(support::await_readable(late_job.connection(), 0));
  }
}

TEST_CASE("a time limit beyond what poll takes is no limit at once", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const std::uint64_t limit =
      GENERATE(std::uint64_t{INT32_MAX} + 1, std::uint64_t{UINT32_MAX} + 1, std::uint64_t{1} << 62);
  auto request = TestContext::shell("exit 3");
  request.policy.time_limit_ms = limit;
  CHECK(context.run(std::move(request)).exited.wait_status == 3 << 8);
}

TEST_CASE("running jobs are listed until they end", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  CHECK(context.list_jobs().jobs.empty());
  auto pipe = support::make_pipe();
  auto other_pipe = support::make_pipe();
  auto job = start_ready(context, kSleep, pipe);
  auto other = start_ready(context, kSleep, other_pipe);
  auto list = context.list_jobs().jobs;
  REQUIRE(list.size() == 2);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.job < b.job; });
  CHECK(list[0].job == job.id());
  CHECK(list[1].job == other.id());
  CHECK(list[0].program == "/bin/sh");
  CHECK(list[0].pid > 2);
  CHECK(list[0].pid != list[1].pid);
  CHECK(list[0].running_ms < 10'000);
  job.send(wire::Signal{SIGKILL});
  job.expect<wire::Exited>();
  list = context.list_jobs().jobs;
  REQUIRE(list.size() == 1);
  CHECK(list[0].job == other.id());
}

TEST_CASE("routerd can signal one job or all of them", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  support::Pipe pipes[3] = {support::make_pipe(), support::make_pipe(), support::make_pipe()};
  auto first = start_ready(context, kSleep, pipes[0]);
  auto second = start_ready(context, kSleep, pipes[1]);
  auto third = start_ready(context, kSleep, pipes[2]);
  context.tell_init(wire::SignalJob{second.id(), {SIGINT, wire::KillScope::group}});
  CHECK(second.expect<wire::Exited>().wait_status != 0);
  CHECK(context.list_jobs().jobs.size() == 2);
  context.tell_init(wire::SignalJob{0, {SIGTERM, wire::KillScope::group}});
  CHECK(first.expect<wire::Exited>().wait_status == SIGTERM);
  CHECK(third.expect<wire::Exited>().wait_status == SIGTERM);
}

TEST_CASE("killing the spawner from inside empties the context and leaves it usable",
          "[contexts][root]") {
  const Tier tier = GENERATE(Tier::namespaces, Tier::none);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(tier);
  auto pipe = support::make_pipe();
  auto victim = start_ready(context, kSleep, pipe);
  auto killer = context.start(TestContext::shell("kill -9 $PPID; sleep 1000"));
  killer.expect<wire::Started>();
  CHECK(killer.is_closed_by_init());
  support::await_end_of_file(pipe.read.borrow());
  CHECK(victim.is_closed_by_init());
  CHECK(context.run(TestContext::shell("echo again")).text == "again\n");
  CHECK(context.list_jobs().jobs.empty());
  CHECK(context->destroy().survivors == 0);
}

namespace {

wire::ExecRequest member(const std::string& script) {
  auto request = TestContext::shell(script);
  request.state.group_leader = false;
  return request;
}

/// The first line a program writes to `pipe`.
std::string line_of(support::Pipe& pipe) {
  std::string line;
  for (char byte = 0; ::read(pipe.read.borrow(), &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

}  // namespace

TEST_CASE("programs that lead no group have each their own", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  const std::string wait = "sleep 1000 & echo $(ps -o pgid= $$) >&3; wait";
  auto first = context.start(member(wait), {{pipe.write.borrow(), 3}});
  const std::string first_group = line_of(pipe);
  auto second = context.start(member(wait), {{pipe.write.borrow(), 3}});
  CHECK(line_of(pipe) != first_group);
  SECTION("a signal to the group reaches all of it, and nobody else's") {
    first.send(wire::Signal{SIGTERM});
    first.expect<wire::Started>();
    CHECK(first.expect<wire::Exited>().wait_status == SIGTERM);
    // A signal has been sent when kill(2) returns, but its receiver may not have ended yet.
    const std::string count = "until [ $(pgrep -c sleep) = 1 ]; do sleep .01; done; echo 1";
    CHECK(context.run(TestContext::shell(count)).text == "1\n");
  }
  SECTION("a requester that goes takes the group along") {
    first.disconnect();
    second.disconnect();
    pipe.write.reset();
    support::await_end_of_file(pipe.read.borrow());
  }
}

TEST_CASE("a group is used again when it is empty, and only then", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const std::string group = context.run(member("echo $(ps -o pgid= $$)")).text;
  CHECK(context.run(member("echo $(ps -o pgid= $$)")).text == group);
  CHECK(context.run(member("sleep 1000 >/dev/null 2>&1 & echo $(ps -o pgid= $$)")).text == group);
  CHECK(context.run(member("echo $(ps -o pgid= $$)")).text != group);
  CHECK(context.run(TestContext::shell("pgrep -g " + group.substr(0, group.size() - 1))).text !=
        "");
}

TEST_CASE("a program may signal, stop and continue its parent", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  for (const char* signal : {"HUP", "INT", "USR1", "TERM", "PIPE", "CHLD", "RTMIN", "STOP"}) {
    CAPTURE(signal);
    const auto sent =
        context.run(TestContext::shell(std::string("kill -") + signal + " $PPID; echo sent"));
    CHECK(sent.text == "sent\n");
  }
  CHECK(context.probe().at("ppid") == "2");
}

TEST_CASE("orphans are reaped: no zombie is left in a context", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto job = context.start(
      TestContext::shell("for i in 1 2 3 4 5 6 7 8; do (sh -c 'exec true <&3' &) ; done"),
      {{pipe.write.borrow(), 3}});
  pipe.write.reset();
  job.expect<wire::Started>();
  job.expect<wire::Exited>();
  support::await_end_of_file(pipe.read.borrow());
  // They have closed the pipe on their way out; one more spawn, and PID 1 has had its turn.
  std::string left;
  for (int attempt = 0; attempt < 100; ++attempt) {
    left = context.probe().at("processes");
    if (std::count(left.begin(), left.end(), ' ') == 3) break;
  }
  CHECK(std::count(left.begin(), left.end(), ' ') == 3);
}

TEST_CASE("an init survives orders it cannot read", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const int channel = context->channel();
  support::send_raw(channel, "short");
  support::send_raw(
      channel, wire::encode_header(
                   {.length = 0, .type = wire::MessageType::spawn, .version = 9, .fd_count = 0}));
  for (const auto type : {wire::MessageType::spawn, wire::MessageType::spawn_fds,
                          wire::MessageType::list_jobs, wire::MessageType::signal_job,
                          wire::MessageType::setup, static_cast<wire::MessageType>(999)}) {
    REQUIRE(wire::send_datagram(channel, type, "garbage"));
  }
  REQUIRE(wire::send_datagram(channel, wire::MessageType::spawn,
                              wire::encode(wire::Spawn{77, TestContext::shell("exit")})));
  CHECK(context.run(TestContext::shell("echo alive")).text == "alive\n");
}

TEST_CASE("hundreds of jobs run at the same time", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(Tier::namespaces);
  auto gate = support::make_pipe();
  std::vector<support::Job> jobs;
  for (int i = 0; i < 200; ++i) {
    auto request = TestContext::shell("read line <&3; exit " + std::to_string(i));
    jobs.push_back(context.start(std::move(request), {{gate.read.borrow(), 3}}));
    jobs.back().expect<wire::Started>();
  }
  CHECK(context.list_jobs().jobs.size() == 200);
  gate.write.reset();
  for (int i = 0; i < 200; ++i) {
    REQUIRE(jobs[static_cast<std::size_t>(i)].expect<wire::Exited>().wait_status == i << 8);
  }
}
