// What an init makes of a request: tests/support/probe.c tells what arrived in the program.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"
#include "wire/requester.h"

using contexts::Tier;
using support::name_of_mark;
using support::TestContext;
using Report = std::map<std::string, std::string>;

namespace {

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

std::uint64_t mask_of(const Report& report, const char* key) {
  return std::stoull(report.at(key), nullptr, 16);
}

std::vector<std::string> values(const Report& report, const std::string& prefix) {
  std::vector<std::string> found;
  for (int i = 0; report.contains(prefix + std::to_string(i)); ++i) {
    found.push_back(report.at(prefix + std::to_string(i)));
  }
  return found;
}

/// Number -> what it is, without the pipe the report is written to.
std::map<int, std::string> fds_of(const Report& report) {
  std::map<int, std::string> fds;
  for (const auto& [key, value] : report) {
    if (key.starts_with("fd") && !value.starts_with("pipe:")) {
      fds.emplace(std::stoi(key.substr(2)), value);
    }
  }
  return fds;
}

}  // namespace

TEST_CASE("a program gets its arguments and environment as they were sent", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.argv = {"another name", "1", "", "-x=y z"};
  request.env = {"A=1", "NOEQUALS", "A=2", ""};
  const auto report = context.probe(std::move(request));
  CHECK(values(report, "argv") == std::vector<std::string>{"another name", "1", "", "-x=y z"});
  CHECK(values(report, "env") == std::vector<std::string>{"A=1", "NOEQUALS", "A=2", ""});
}

TEST_CASE("an exit code and a signal arrive as the wait status", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(Tier::namespaces);
  CHECK(context.run(TestContext::shell("exit 0")).exited.wait_status == 0);
  CHECK(context.run(TestContext::shell("exit 7")).exited.wait_status == 0x0700);
  CHECK(context.run(TestContext::shell("exit 255")).exited.wait_status == 0xff00);
  CHECK(context.run(TestContext::shell("kill -TERM $$")).exited.wait_status == SIGTERM);
  CHECK(context.run(TestContext::shell("kill -KILL $$")).exited.wait_status == SIGKILL);
  CHECK((context.run(TestContext::shell("ulimit -c 0; kill -SEGV $$")).exited.wait_status & 0x7f) ==
        SIGSEGV);
}

TEST_CASE("an exit tells what the program used", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto ended =
      context.run(TestContext::shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")).exited;
  CHECK(ended.user_us + ended.system_us > 0);
  CHECK(ended.user_us + ended.system_us < 60'000'000);
  CHECK(ended.max_rss_kib > 100);
  CHECK_FALSE(ended.timed_out);
}

TEST_CASE("a program that cannot be run is refused with its errno and the right code",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  REQUIRE(base::write_file(folder / "no-x", "#!/bin/sh\n", 0644));
  REQUIRE(base::write_file(folder / "no-magic", "echo never\n", 0755));
  REQUIRE(base::write_file(folder / "no-interpreter", "#!/does/not/exist\n", 0755));
  TestContext context(Tier::namespaces);
  struct Row {
    std::string path;
    int code;
    int error;
    std::string says;
  };
  for (const auto& row : std::vector<Row>{
           {"/does/not/exist", 127, ENOENT, "/does/not/exist: not found in the context"},
           {folder / "no-interpreter", 127, ENOENT, "not found in the context"},
           {folder / "no-x", 126, EACCES, "Permission denied"},
           {folder.path(), 126, EACCES, "Permission denied"},
           {folder / "no-magic", 126, ENOEXEC, "no '#!' line"}}) {
    CAPTURE(row.path);
    const auto refused = context.refusal_of(TestContext::request({row.path}));
    CHECK(refused.exit_code == row.code);
    CHECK(refused.error == row.error);
    CHECK_THAT(refused.message, Catch::Contains(row.says) && Catch::StartsWith(row.path));
  }
}

TEST_CASE("a missing working directory is refused before the program runs", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  REQUIRE(base::write_file(folder / "file", "", 0644));
  TestContext context(Tier::namespaces);
  const auto refused_in = [&](const std::string& cwd) {
    auto request = TestContext::shell("touch " + (folder / "ran"));
    request.cwd = cwd;
    return context.refusal_of(std::move(request));
  };
  const auto missing = refused_in(folder / "missing");
  CHECK(missing.exit_code == 126);
  CHECK(missing.error == ENOENT);
  CHECK(missing.message == "working directory " + (folder / "missing") +
                               " cannot be entered in the context: No such file or directory");
  CHECK(refused_in(folder / "file").error == ENOTDIR);
  const auto deleted = refused_in("");
  CHECK(deleted.exit_code == 126);
  CHECK_THAT(deleted.message, Catch::Contains("working directory (deleted)"));
  CHECK(::access((folder / "ran").c_str(), F_OK) != 0);
}

TEST_CASE("a program starts in its working directory", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.cwd = folder.path();
  CHECK(context.probe(std::move(request)).at("cwd") == folder.path());
  auto relative = TestContext::probe_request();
  relative.cwd = support::programs_folder();
  relative.path = "./airlock-test-probe";
  CHECK(context.probe(std::move(relative)).at("cwd") == support::programs_folder());
}

TEST_CASE("PATH is searched as execvp does", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  for (const auto* name : {"closed", "open", "scripts"}) {
    REQUIRE(::mkdir((folder / name).c_str(), 0755) == 0);
  }
  REQUIRE(base::write_file(folder / "closed/prog", "#!/bin/sh\necho closed\n", 0644));
  REQUIRE(base::write_file(folder / "open/prog", "#!/bin/sh\necho open\n", 0755));
  REQUIRE(base::write_file(folder / "closed/only", "#!/bin/sh\n", 0644));
  REQUIRE(base::write_file(folder / "scripts/bare", "echo \"$0 $1 $2\"\n", 0755));
  REQUIRE(base::write_file(folder / "cwd-prog", "#!/bin/sh\necho from cwd\n", 0755));
  TestContext context(Tier::namespaces);
  const auto request = [&](const std::string& name, const std::string& path) {
    auto made = TestContext::request({name, "one", "two"});
    made.search_path = true;
    made.cwd = folder.path();
    made.env = {"PATH=" + path};
    return made;
  };
  const std::string closed = folder / "closed", open = folder / "open",
                    scripts = folder / "scripts";
  CHECK(context.run(request("prog", "/nowhere:" + open)).text == "open\n");
  CHECK(context.run(request("prog", "/etc/passwd:" + open)).text == "open\n");
  CHECK(context.run(request("prog", closed + ":" + open)).text == "open\n");
  CHECK(context.run(request("cwd-prog", "/nowhere:")).text == "from cwd\n");
  CHECK(context.run(request("cwd-prog", ":/nowhere")).text == "from cwd\n");
  CHECK(context.run(request("./open/prog", "/nowhere")).text == "open\n");
  CHECK(context.run(request("bare", scripts)).text == scripts + "/bare one two\n");
  CHECK(context.run(request(folder / "scripts/bare", "")).text == scripts + "/bare one two\n");
  CHECK(context.refusal_of(request("only", closed + ":" + open)).error == EACCES);
  CHECK(context.refusal_of(request("only", closed + ":" + open)).exit_code == 126);
  CHECK(context.refusal_of(request("no-such", closed + ":" + open)).exit_code == 127);
  CHECK(context.refusal_of(request("", open)).exit_code == 127);
}

TEST_CASE("without search_path a name is no program", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  CHECK(context.refusal_of(TestContext::request({"true"})).exit_code == 127);
}

TEST_CASE("descriptors arrive under their numbers, and no others", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(Tier::namespaces);
  const auto a = support::marked_fd("a");
  const auto b = support::marked_fd("b");
  const auto c = support::marked_fd("c");
  const auto report =
      context.probe(TestContext::probe_request(),
                    {{a.borrow(), 0}, {b.borrow(), 3}, {c.borrow(), 100}, {a.borrow(), 1000}}, 1);
  CHECK(fds_of(report) == std::map<int, std::string>{{0, name_of_mark("a")},
                                                     {3, name_of_mark("b")},
                                                     {100, name_of_mark("c")},
                                                     {1000, name_of_mark("a")}});
}

TEST_CASE("descriptors arrive whatever numbers they come in at", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  // The init receives them at some numbers from about 6 on: these requests cover all of those, in
  // both orders, so that each one's place is another one's source.
  constexpr int kCount = 24;
  const auto marks = support::marked_fds(kCount);
  const bool is_reversed = GENERATE(false, true);
  const int shift = GENERATE(0, 1, 5, 8);
  CAPTURE(is_reversed, shift);
  std::vector<support::PassedFd> fds;
  std::map<int, std::string> expected;
  for (int i = 0; i < kCount; ++i) {
    const int number = (is_reversed ? kCount - 1 - i : i) + shift;
    const int place = number == 1 ? 500 : number;  // 1 is the report's
    fds.push_back({marks[static_cast<std::size_t>(i)].borrow(), static_cast<std::uint32_t>(place)});
    expected.emplace(place, name_of_mark("mark-" + std::to_string(i)));
  }
  CHECK(fds_of(context.probe(TestContext::probe_request(), fds)) == expected);
}

TEST_CASE("0 and 1 can change places", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto in = support::marked_fd("in");
  const auto out = support::marked_fd("out");
  const auto report =
      context.probe(TestContext::probe_request(), {{in.borrow(), 1}, {out.borrow(), 0}}, 2);
  CHECK(fds_of(report) ==
        std::map<int, std::string>{{0, name_of_mark("out")}, {1, name_of_mark("in")}});
}

TEST_CASE("0, 1 and 2 stay closed when they are not passed", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const std::uint32_t report_number = GENERATE(0u, 1u, 2u, 3u, 7u);
  const auto report = context.probe(TestContext::probe_request(), {}, report_number);
  CHECK(fds_of(report).empty());
  CHECK(report.contains("fd" + std::to_string(report_number)));
  CHECK(context.run(TestContext::request({"/bin/true"})).exited.wait_status == 0);
}

TEST_CASE("more descriptors than one datagram takes arrive in order", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const std::size_t count = GENERATE(250, 251, 252, 253, 504, 505, 1000);
  CAPTURE(count);
  TestContext context(Tier::namespaces);
  const auto marks = support::marked_fds(count);
  std::vector<support::PassedFd> fds;
  std::map<int, std::string> expected;
  for (std::size_t i = 0; i < count; ++i) {
    fds.push_back({marks[i].borrow(), static_cast<std::uint32_t>(i + 3)});
    expected.emplace(static_cast<int>(i + 3), name_of_mark("mark-" + std::to_string(i)));
  }
  CHECK(fds_of(context.probe(TestContext::probe_request(), fds)) == expected);
}

TEST_CASE("descriptors that do not match their numbers are refused", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pair = support::stream_pair(SOCK_NONBLOCK);
  auto request = TestContext::probe_request();
  request.fd_numbers = {0, 1};
  const int connection = pair.theirs.borrow();
  const int fds[] = {connection, connection};
  REQUIRE(wire::send_datagram(context->channel(), wire::MessageType::spawn,
                              wire::encode(wire::Spawn{99, request}), fds));
  support::Job job(99, std::move(pair.ours));
  CHECK(job.expect<wire::NotStarted>().error == EBADMSG);
  CHECK(context.list_jobs().jobs.empty());
}

TEST_CASE("a pipe that was passed is held open by the program alone", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  const auto gate = support::make_pipe();
  auto job = context.start(TestContext::shell("exec 1>&-; read line"),
                           {{gate.read.borrow(), 0}, {pipe.write.borrow(), 1}});
  pipe.write.reset();
  job.expect<wire::Started>();
  support::await_end_of_file(pipe.read.borrow());
  CHECK_FALSE(support::await_readable(job.connection(), 0));
}

TEST_CASE("a program's signals are ignored, blocked and pending as its requester's were",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  SECTION("nothing of the init's own state shows") {
    const auto report = context.probe();
    CHECK(mask_of(report, "SigIgn") == 0);
    CHECK(mask_of(report, "SigBlk") == 0);
    CHECK(mask_of(report, "SigPnd") == 0);
    CHECK(mask_of(report, "ShdPnd") == 0);
    CHECK(report.at("umask") == "22");
    CHECK(report.at("nice") == "0");
    CHECK(report.at("NoNewPrivs") == "0");
  }
  SECTION("what was asked for does") {
    auto request = TestContext::probe_request();
    request.state.ignored_signals = bit(SIGINT) | bit(SIGPIPE) | bit(SIGCHLD) | bit(64);
    request.state.blocked_signals = bit(SIGUSR1) | bit(SIGTERM) | bit(33) | bit(64);
    request.state.pending_signals = bit(SIGUSR1) | bit(SIGHUP);
    request.state.umask = 0137;
    request.state.nice = 5;
    request.state.no_new_privs = true;
    const auto report = context.probe(std::move(request));
    CHECK(mask_of(report, "SigIgn") == (bit(SIGINT) | bit(SIGPIPE) | bit(SIGCHLD) | bit(64)));
    CHECK(mask_of(report, "SigBlk") == (bit(SIGUSR1) | bit(SIGTERM) | bit(33) | bit(64)));
    // Only what is blocked too can be pending.
    CHECK(mask_of(report, "ShdPnd") == bit(SIGUSR1));
    CHECK(report.at("umask") == "137");
    CHECK(report.at("nice") == "5");
    CHECK(report.at("NoNewPrivs") == "1");
  }
}

TEST_CASE("limits, affinity and personality are the requester's", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto before = context.probe();
  auto request = TestContext::probe_request();
  request.state.rlimits = {{RLIMIT_NOFILE, 321, 654}, {RLIMIT_CORE, 0, 0}};
  request.state.affinity = std::string("\1\0\0\0\0\0\0\0", 8);
  request.state.personality = ADDR_NO_RANDOMIZE;
  const auto report = context.probe(std::move(request));
  CHECK(report.at("nofile") == "321/654");
  CHECK(report.at("core") == "0/0");
  CHECK(report.at("cpus") == "1");
  CHECK(std::stoul(report.at("personality"), nullptr, 16) == ADDR_NO_RANDOMIZE);
  CHECK(before.at("nofile") != "321/654");
  CHECK(std::stoul(before.at("personality"), nullptr, 16) == 0);
}

TEST_CASE("nobody gets more than its user may have by asking for it", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto before = context.probe();
  auto request = TestContext::probe_request();
  request.credentials = {1000, 1000, {}};
  request.state.nice = -5;
  request.state.rlimits = {{RLIMIT_NOFILE, 2'000'000, 2'000'000}, {RLIMIT_CORE, 0, 0}};
  const auto report = context.probe(std::move(request));
  CHECK(report.at("nice") == std::to_string(::getpriority(PRIO_PROCESS, 0)));
  CHECK(report.at("nofile") == before.at("nofile"));
  CHECK(report.at("core") == "0/0");
}

TEST_CASE("what kept a program from starting is on its own stderr", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto pipe = support::make_pipe();
  auto request = TestContext::request({"/no/such/program"});
  auto job = context.start(request, {{pipe.write.borrow(), 2}});
  pipe.write.reset();
  job.expect<wire::Started>();
  const auto told = job.expect<wire::NotStarted>();
  CHECK(told.is_told);
  CHECK(told.message == "/no/such/program: not found in the context");
  CHECK(support::value_of(base::read_all(pipe.read.borrow())) == "airlock: " + told.message + "\n");
  // Without one the requester must tell.
  CHECK_FALSE(context.refusal_of(TestContext::request({"/no/such/program"})).is_told);
}

TEST_CASE("a program gets its requester's attributes and timers", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto before = context.probe();
  CHECK(before.at("subreaper") == "0");
  CHECK(before.at("pdeathsig") == "0");
  CHECK(before.at("scheduler") == "0");
  CHECK(before.at("timer0") == "0,0");
  auto request = TestContext::probe_request();
  request.state.oom_score_adj = 300;
  request.state.child_subreaper = true;
  request.state.parent_death_signal = SIGUSR1;
  request.state.timer_slack_ns = 12345;
  request.state.scheduler = SCHED_BATCH;
  request.state.timers = {{ITIMER_REAL, 1000'900'000, 0}, {ITIMER_PROF, 500'900'000, 7'000'000}};
  const auto report = context.probe(std::move(request));
  CHECK(report.at("oom_score_adj") == "300");
  CHECK(report.at("subreaper") == "1");
  CHECK(report.at("pdeathsig") == std::to_string(SIGUSR1));
  CHECK(report.at("slack") == "12345");
  CHECK(report.at("scheduler") == std::to_string(SCHED_BATCH));
  CHECK(report.at("timer0") == "1000,0");
  CHECK(report.at("timer1") == "0,0");
  CHECK(report.at("timer2") == "500,7");
  // None of it is the next one's.
  const auto after = context.probe();
  for (const char* key : {"oom_score_adj", "subreaper", "pdeathsig", "slack", "timer0"}) {
    CAPTURE(key);
    CHECK(after.at(key) == before.at(key));
  }
}

TEST_CASE("a program is no less likely an OOM victim than its context, and not real-time",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.state.oom_score_adj = -1000;
  request.state.scheduler = SCHED_FIFO;
  const auto report = context.probe(std::move(request));
  CHECK(report.at("oom_score_adj") == context.probe().at("oom_score_adj"));
  CHECK(report.at("scheduler") == "0");
}

TEST_CASE("a program leads a group or a session only if its requester did", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto plain = context.probe();
  CHECK(plain.at("pgrp") == plain.at("pid"));
  CHECK(plain.at("sid") == "2");
  CHECK(plain.at("ppid") == "2");
  CHECK(plain.at("terminal") == "no");
  auto request = TestContext::probe_request();
  request.state.session_leader = true;
  const auto leader = context.probe(std::move(request));
  CHECK(leader.at("sid") == leader.at("pid"));
  CHECK(leader.at("terminal") == "no");
  request = TestContext::probe_request();
  request.state.group_leader = false;
  const auto member = context.probe(std::move(request));
  CHECK(member.at("pgrp") != member.at("pid"));
  CHECK(member.at("pgrp") != "2");
  CHECK(member.at("sid") == "2");
}

TEST_CASE("a terminal that is handed over becomes the program's own", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const base::UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(master);
  REQUIRE(::grantpt(master.borrow()) == 0);
  REQUIRE(::unlockpt(master.borrow()) == 0);
  const base::UniqueFd slave(::open(::ptsname(master.borrow()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(slave);
  auto request = TestContext::probe_request();
  request.tty = wire::TtyMode::hand_over;
  request.tty_fd = 0;
  const auto report = context.probe(std::move(request), {{slave.borrow(), 0}});
  CHECK(report.at("sid") == report.at("pid"));
  CHECK(report.at("terminal") == "yes");
}

TEST_CASE("a terminal that is none is refused", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.tty = wire::TtyMode::hand_over;
  request.tty_fd = 0;
  const auto refused = context.refusal_of(std::move(request));
  CHECK(refused.exit_code == 126);
  CHECK(refused.error != 0);
}

TEST_CASE("a program runs with the credentials routerd filled in", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.credentials = {1000, 1001, {1002, 1003}};
  const auto user = context.probe(std::move(request));
  CHECK(user.at("uid") == "1000");
  CHECK(user.at("euid") == "1000");
  CHECK(user.at("gid") == "1001");
  CHECK(user.at("egid") == "1001");
  CHECK(user.at("groups") == "1002,1003");
  CHECK(mask_of(user, "CapEff") == 0);
  CHECK(mask_of(user, "CapPrm") == 0);

  request = TestContext::probe_request();
  request.credentials = {0, 0, {7}};
  CHECK(context.probe(std::move(request)).at("groups") == "7");
  request = TestContext::probe_request();
  request.credentials = {0, 0, {}};
  CHECK(context.probe(std::move(request)).at("groups").empty());
}

TEST_CASE("an unprivileged init cannot become anybody else", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, [] {
          TestContext context(Tier::userns);
          auto request = TestContext::request({"/bin/true"});
          request.credentials = {0, 0, {}};
          const auto refused = context.refusal_of(std::move(request));
          return std::to_string(refused.exit_code) + " " + refused.message;
        }) == "126 /bin/true: cannot become uid 0: Operation not permitted");
}

TEST_CASE("the uid that means no change is refused, not taken for root", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::probe_request();
  request.credentials = {UINT32_MAX, UINT32_MAX, {}};
  CHECK_THROWS_WITH(context.probe(std::move(request)), Catch::Contains("cannot become uid"));
}

TEST_CASE("a user's folder is entered with that user's rights", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
  TestContext context(Tier::namespaces);
  auto request = TestContext::request({"/bin/true"});
  request.credentials = {1000, 1000, {}};
  request.cwd = folder.path();
  CHECK(context.refusal_of(std::move(request)).error == EACCES);
}

TEST_CASE("arguments of 2 MiB reach the program", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::shell("echo $# ${#1} ${#16}");
  request.argv.add("sh");
  for (int i = 0; i < 16; ++i) request.argv.add(std::string(131'000, 'x'));
  rlimit stack{};
  ::getrlimit(RLIMIT_STACK, &stack);
  request.state.rlimits = {{RLIMIT_STACK, 64u << 20, stack.rlim_max}};
  CHECK(context.run(std::move(request)).text == "16 131000 131000\n");
}

TEST_CASE("arguments the kernel does not take are refused with E2BIG", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  auto request = TestContext::request({"/bin/true"});
  request.argv.add(std::string(200'000, 'x'));
  const auto refused = context.refusal_of(std::move(request));
  CHECK(refused.exit_code == 126);
  CHECK(refused.error == E2BIG);
}
