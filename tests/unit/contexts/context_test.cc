#include "contexts/context.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "contexts/capabilities.h"
#include "contexts/probe.h"
#include "routerd/peer.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"

using contexts::Tier;
using support::TestContext;

namespace {

std::size_t count_words(const std::string& text) {
  std::istringstream words(text);
  std::size_t count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

std::size_t processes_here() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    count +=
        std::isdigit(static_cast<unsigned char>(entry.path().filename().string().front())) != 0;
  }
  return count;
}

ino_t namespace_of(const std::string& pid, const std::string& kind) {
  struct stat info {};
  return ::stat(("/proc/" + pid + "/ns/" + kind).c_str(), &info) == 0 ? info.st_ino : 0;
}

/// A script that leaves a process behind which no process group, session or parent ties to the
/// job, and ends when that process runs. It holds descriptor 3 open.
constexpr const char* kLeaveDaemon =
    "setsid sh -c '(sh -c \"trap \\\"\\\" HUP TERM; echo r >&3; exec sleep 1000\" &)' </dev/null; "
    "exec 3>&-";

/// A context that runs such a process, and a pipe that is at its end when it is gone.
struct Haunted {
  explicit Haunted(Tier tier) : context(tier) {
    auto job = context.start(TestContext::shell(kLeaveDaemon), {{pipe.write.borrow(), 3}});
    pipe.write.reset();
    job.expect<wire::Started>();
    job.expect<wire::Exited>();
    if (support::read_byte(pipe.read.borrow()) != 'r') throw std::runtime_error("no daemon");
    if (support::read_byte(pipe.read.borrow()) != '\n') throw std::runtime_error("no daemon");
  }
  bool is_alive() const { return !support::await_readable(pipe.read.borrow(), 0); }

  support::Pipe pipe = support::make_pipe();
  TestContext context;
};

}  // namespace

TEST_CASE("a context comes and goes without a trace", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  pid_t init = -1;
  {
    TestContext context(Tier::namespaces);
    init = context->init_pid();
    CHECK(context->tier() == Tier::namespaces);
    CHECK(context->lacks().empty());
    CHECK(::kill(init, 0) == 0);
    CHECK(context->pid_namespace() != 0);
    CHECK(context->pid_namespace() != namespace_of("self", "pid"));
    CHECK(context.run(TestContext::request({"/bin/true"})).exited.wait_status == 0);
    const auto destroyed = context->destroy();
    CHECK(destroyed.survivors == 0);
    CHECK(context->init_pid() == -1);
    CHECK(context->destroy().survivors == 0);
  }
  CHECK(::kill(init, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("destroying the object alone ends the context too", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  auto pipe = support::make_pipe();
  {
    TestContext context(Tier::namespaces);
    auto job =
        context.start(TestContext::request({"/bin/sleep", "1000"}), {{pipe.write.borrow(), 3}});
    pipe.write.reset();
    job.expect<wire::Started>();
  }
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a double-forked process of its own session dies with its context", "[contexts][root]") {
  const Tier tier = GENERATE(Tier::namespaces, Tier::uids, Tier::landlock, Tier::none);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  Haunted haunted(tier);
  CHECK(haunted.is_alive());
  CHECK(haunted.context->destroy().survivors == 0);
  support::await_end_of_file(haunted.pipe.read.borrow());
}

TEST_CASE("a context whose spawner is stopped ends all the same", "[contexts][root]") {
  // In `uids` a program has no right to stop it.
  const Tier tier = GENERATE(Tier::namespaces, Tier::landlock, Tier::none);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  auto pipe = support::make_pipe();
  TestContext context(tier);
  auto job = context.start(TestContext::shell("kill -STOP $PPID; echo r >&3; exec sleep 1000"),
                           {{pipe.write.borrow(), 3}});
  pipe.write.reset();
  REQUIRE(support::read_byte(pipe.read.borrow()) == 'r');
  REQUIRE(support::read_byte(pipe.read.borrow()) == '\n');
  CHECK(context->destroy().survivors == 0);
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a stopped process dies with its context", "[contexts][root]") {
  const Tier tier = GENERATE(Tier::namespaces, Tier::uids, Tier::landlock, Tier::none);
  if (support::lacks_root()) return;
  auto pipe = support::make_pipe();
  TestContext context(tier);
  auto job = context.start(TestContext::shell("kill -STOP $$"), {{pipe.write.borrow(), 3}});
  pipe.write.reset();
  job.expect<wire::Started>();
  job.expect<wire::Stopped>();
  CHECK(context->destroy().survivors == 0);
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a context has its own /proc, which shows its own processes only", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto report = context.probe();
  // PID 1, the spawner, the probe.
  CHECK(count_words(report.at("processes")) == 3);
  CHECK(report.at("processes").starts_with("1 2 "));
  CHECK(processes_here() >= 3);  // this process, and from here the context's two as well
  CHECK(report.at("ppid") == "2");
  CHECK(report.at("NSpid") == report.at("pid"));
}

TEST_CASE("nothing of routerd's process tree can be signalled from inside", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  support::Child victim([] {
    for (;;) ::pause();
    return 0;
  });
  const std::string pid = std::to_string(victim.pid());
  const auto kill_it = context.run(TestContext::shell("kill -9 " + pid));
  CHECK(kill_it.exited.wait_status != 0);
  CHECK(::kill(victim.pid(), 0) == 0);
  // PID 1 takes no signal from inside.
  CHECK(context.run(TestContext::shell("kill -9 1; echo lives")).text == "lives\n");
}

TEST_CASE("contexts share no namespace but those of network, host name and users",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext one(Tier::namespaces);
  TestContext two(Tier::namespaces);
  const std::string first = std::to_string(one->init_pid());
  const std::string second = std::to_string(two->init_pid());
  for (const auto* kind : {"pid", "mnt", "ipc", "cgroup"}) {
    CAPTURE(kind);
    CHECK(namespace_of(first, kind) != namespace_of("self", kind));
    CHECK(namespace_of(first, kind) != namespace_of(second, kind));
  }
  for (const auto* kind : {"net", "uts", "user"}) {
    CHECK(namespace_of(first, kind) == namespace_of("self", kind));
  }
}

namespace {

/// A listener, and the connection of a program of a context to it.
class Caller {
 public:
  explicit Caller(TestContext& context, bool has_own_namespace = false)
      : job_(context.start(request(has_own_namespace))) {
    job_.expect<wire::Started>();
    if (!support::await_readable(listener_.borrow())) throw std::runtime_error("no connection");
    connection_.reset(::accept4(listener_.borrow(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  bool is_in(const TestContext& context) {
    const auto peer = support::value_of(routerd::peer_of(connection_.borrow()));
    return context->contains(connection_.borrow(), peer.pid);
  }
  /// The same when the program has ended but the connection is still there.
  bool is_in_after_its_end(const TestContext& context) {
    const auto peer = support::value_of(routerd::peer_of(connection_.borrow()));
    job_.send(wire::Signal{SIGKILL});
    job_.expect<wire::Exited>();
    return context->contains(connection_.borrow(), peer.pid);
  }

 private:
  wire::ExecRequest request(bool has_own_namespace) {
    std::vector<std::string> argv = {support::probe_program(), "connect", folder_ / "s"};
    if (has_own_namespace) argv.push_back("unshare");
    return TestContext::request(argv);
  }

  support::TempDir folder_;
  base::UniqueFd listener_ = support::listen_at(folder_ / "s");
  support::Job job_;
  base::UniqueFd connection_;
};

}  // namespace

TEST_CASE("contains knows which callers are the context's", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  TestContext context(Tier::namespaces);
  TestContext other(Tier::namespaces);
  TestContext none(Tier::none);
  Caller inside(context);
  Caller elsewhere(other);
  Caller outside(none);
  CHECK(inside.is_in(context));
  CHECK_FALSE(elsewhere.is_in(context));
  CHECK_FALSE(outside.is_in(context));
  const auto ourselves = support::stream_pair();
  CHECK_FALSE(context->contains(ourselves.ours.borrow(), ::getpid()));
  // Without namespaces there is nothing to tell callers apart by.
  CHECK(outside.is_in(none));
  CHECK(inside.is_in(none));
}

TEST_CASE("a caller that has ended is nobody's", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  Caller inside(context);
  CHECK_FALSE(inside.is_in_after_its_end(context));
}

TEST_CASE("a caller with a PID namespace for its children is still the context's",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  Caller inside(context, true);
  CHECK(inside.is_in(context));
}

TEST_CASE("a user context has the developer's capabilities and no way to more",
          "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  const auto report = context.probe();
  const auto mask = [&report](const char* set) { return std::stoull(report.at(set), nullptr, 16); };
  const auto expected = contexts::developer_capabilities() & contexts::effective_capabilities();
  CHECK(mask("CapBnd") == expected);
  CHECK(mask("CapPrm") == expected);
  CHECK(mask("CapEff") == expected);
  CHECK(mask("CapInh") == 0);
  CHECK(mask("CapAmb") == 0);
}

TEST_CASE("the platform's context keeps the daemon's capabilities", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces, [](auto& spec) { spec.is_platform = true; });
  const auto report = context.probe();
  CHECK(std::stoull(report.at("CapEff"), nullptr, 16) == contexts::effective_capabilities());
}

TEST_CASE("a user context cannot turn the kernel's knobs", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  for (const auto* file :
       {"/proc/sys/kernel/domainname", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"}) {
    CAPTURE(file);
    if (::access(file, F_OK) != 0) continue;
    const auto touched =
        context.run(TestContext::shell(std::string("[ -e ") + file + " ] && : >>" + file));
    CHECK(touched.exited.wait_status != 0);
    CHECK_THAT(touched.text, Catch::Contains("Read-only file system"));
  }
}

TEST_CASE("the runtime folder shows a context its own view and nothing else", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces, [](auto& spec) { spec.child_context = "other"; });
  REQUIRE(base::write_file(context.runtime().root() + "/control.sock", "", 0600));
  const std::string root = context.runtime().root();
  CHECK(context->airlock_folder() == root);
  CHECK(context.run(TestContext::shell("ls " + root)).text ==
        "airlock-stub\nfarm\nlibairlock-preload.so\n");
  CHECK_THAT(context.run(TestContext::shell("touch " + root + "/x")).text,
             Catch::Contains("Read-only file system"));
  CHECK(context.run(TestContext::shell("test -x " + root + "/airlock-stub")).exited.wait_status ==
        0);
}

TEST_CASE("HOME is a folder of the context's own, with what is shared in it", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  const std::string home = folder / "home";
  for (const auto* name : {"/work", "/.ssh", "/.cache/pip", "/.config/git"}) {
    std::filesystem::create_directories(home + name);
  }
  REQUIRE(base::write_file(home + "/.gitconfig", "[user]", 0644));
  REQUIRE(base::write_file(home + "/.config/git/ignore", "*.o", 0644));
  REQUIRE(base::write_file(home + "/.ssh/id", "key", 0600));
  REQUIRE(base::write_file(home + "/work/file", "shared", 0644));
  TestContext context(Tier::namespaces, [&](auto& spec) {
    spec.home = home;
    spec.share = {home + "/work", home + "/.gitconfig", home + "/.config/git/ignore",
                  home + "/missing", "/etc"};
  });
  const auto in_context = [&](const std::string& script) {
    return context.run(TestContext::shell("cd " + home + " && " + script)).text;
  };
  CHECK(in_context("ls -A") == ".config\n.gitconfig\nwork\n");
  CHECK(in_context("cat work/file .gitconfig .config/git/ignore") == "shared[user]*.o");
  CHECK(in_context("echo new > work/out; echo own > own; cat own") == "own\n");
  CHECK(base::read_file(home + "/work/out").value() == "new\n");
  CHECK_FALSE(std::filesystem::exists(home + "/own"));
  CHECK(base::read_file(context.runtime().home("user") + "/own").value() == "own\n");
  // A file is a copy: what replaces it stays in the context.
  CHECK(in_context("echo other > x && mv x .gitconfig && cat .gitconfig") == "other\n");
  CHECK(base::read_file(home + "/.gitconfig").value() == "[user]");
}

TEST_CASE("what is shared belongs to the owner of HOME", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  const std::string home = folder / "home";
  std::filesystem::create_directories(home + "/.config/git");
  REQUIRE(base::write_file(home + "/.gitconfig", "[user]", 0644));
  REQUIRE(base::write_file(home + "/.config/git/ignore", "*.o", 0644));
  for (const auto* path : {"", "/.gitconfig", "/.config", "/.config/git", "/.config/git/ignore"}) {
    REQUIRE(::chown((home + path).c_str(), 1000, 1000) == 0);
  }
  TestContext context(Tier::namespaces, [&](auto& spec) {
    spec.home = home;
    spec.share = {home + "/.gitconfig", home + "/.config/git/ignore"};
  });
  auto request =
      TestContext::shell("cd " + home + " && cat .gitconfig .config/git/ignore && touch .config/x");
  request.credentials = {1000, 1000, {}};
  CHECK(context.run(std::move(request)).text == "[user]*.o");
}

TEST_CASE("hidden folders are empty and cannot be written", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  std::filesystem::create_directories(folder / "secret");
  REQUIRE(base::write_file(folder / "secret/key", "x", 0644));
  TestContext context(Tier::namespaces, [&](auto& spec) {
    spec.hide = {folder / "secret", folder / "missing"};
  });
  CHECK(context.run(TestContext::shell("ls -A " + (folder / "secret"))).text.empty());
  CHECK_THAT(context.run(TestContext::shell("touch " + (folder / "secret/x"))).text,
             Catch::Contains("Read-only"));
  CHECK_THAT(context.run(TestContext::shell("umount " + (folder / "secret"))).text,
             Catch::Contains("must be superuser") || Catch::Contains("permission denied") ||
                 Catch::Contains("not permitted"));
  CHECK(std::filesystem::exists(folder / "secret/key"));
}

namespace {

/// Tries everything that changes `folder`/program. Echoes what worked.
std::string change_all(const std::string& folder) {
  return "cd " + folder +
         " && cat program; for c in 'echo evil >program' 'rm program' 'mv program x' "
         "'mv ../agent ../other' 'touch new' 'chmod 777 program' 'mount -o remount,rw,bind .'; "
         "do sh -c \"$c\" 2>/dev/null && echo \"worked: $c\"; done; cat program";
}

}  // namespace

TEST_CASE("a protected folder can only be read, and stays where it is", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::TempDir folder;
  std::filesystem::create_directories(folder / "agent");
  REQUIRE(base::write_file(folder / "agent/program", "good", 0666));
  {
    TestContext context(Tier::namespaces, [&](auto& spec) {
      spec.protect = {folder / "agent", folder / "missing"};
    });
    CHECK(context.run(TestContext::shell(change_all(folder / "agent"))).text == "goodgood");
    REQUIRE(base::write_file(folder / "agent/program", "new", 0666));  // the platform's update
    CHECK(context.run(TestContext::shell("cat " + (folder / "agent/program"))).text == "new");
  }
  TestContext control(Tier::namespaces);
  CHECK_THAT(control.run(TestContext::shell(change_all(folder / "agent"))).text,
             Catch::Contains("worked: echo evil >program"));
}

TEST_CASE("a folder is protected in an unprivileged context, too", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, []() -> std::string {
          const support::TempDir folder;
          std::filesystem::create_directories(folder / "agent");
          (void)base::write_file(folder / "agent/program", "good", 0600);
          TestContext context(Tier::userns, [&](auto& spec) { spec.protect = {folder / "agent"}; });
          return context.run(TestContext::shell(change_all(folder / "agent"))).text;
        }) == "goodgood");
}

TEST_CASE("a context that cannot be made says why and leaves nothing", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  REQUIRE(base::write_file(folder / "file", "x", 0600));
  const auto runtime = contexts::RuntimeDir::open(folder / "r");
  REQUIRE(runtime);
  const auto programs = support::programs_folder();
  contexts::ContextSpec spec;
  spec.name = "user";
  const auto error_of = [&](const contexts::ContextSpec& wanted, const std::string& from) {
    const auto made = contexts::Context::create(wanted, {*runtime, from, Tier::namespaces});
    return made ? "made" : made.error().message();
  };
  SECTION("a spec that is not valid") {
    spec.cwd = "x";
    CHECK_THAT(error_of(spec, programs), Catch::Contains("cwd 'x'"));
  }
  SECTION("a file to be hidden") {
    spec.hide = {folder / "file"};
    CHECK_THAT(error_of(spec, programs), Catch::Contains("create context 'user'") &&
                                             Catch::Contains("only folders can be hidden"));
  }
  SECTION("a HOME that is missing") {
    spec.home = folder / "nowhere";
    CHECK_THAT(error_of(spec, programs),
               Catch::Contains("HOME") && Catch::Contains("No such file"));
  }
  SECTION("no init program") {
    CHECK_THAT(error_of(spec, folder.path()), Catch::Contains("airlock-init: No such file"));
  }
  SECTION("an init program that cannot be executed") {
    REQUIRE(base::write_file(folder / "airlock-init", "no program", 0755));
    CHECK_THAT(error_of(spec, folder.path()), Catch::Contains("its init ended early"));
  }
}

TEST_CASE("the end of an init can be waited for", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces);
  CHECK_FALSE(support::await_readable(context->init_pidfd(), 0));
  ::kill(context->init_pid(), SIGKILL);
  CHECK(support::await_readable(context->init_pidfd()));
  CHECK(context->destroy().survivors == 0);
}

TEST_CASE("an init ends when routerd is gone, and its context with it", "[contexts][root]") {
  const Tier tier = GENERATE(Tier::namespaces, Tier::uids, Tier::landlock, Tier::none);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  auto pipe = support::make_pipe();
  {
    support::Child routerd([&] {
      pipe.read.reset();
      TestContext context(tier);
      auto job =
          context.start(TestContext::request({"/bin/sleep", "1000"}), {{pipe.write.borrow(), 3}});
      job.expect<wire::Started>();
      context.remove_folder();
      if (!base::write_all(pipe.write.borrow(), "r")) return 1;
      for (;;) ::pause();
      return 0;
    });
    pipe.write.reset();
    REQUIRE(support::read_byte(pipe.read.borrow()) == 'r');
    CHECK_FALSE(support::await_readable(pipe.read.borrow(), 0));
    routerd.kill(SIGKILL);
    routerd.wait();
  }
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("in tier uids a context's programs have a user id of their own", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext one(Tier::uids);
  TestContext two(Tier::uids);
  const auto first = one->own_ids();
  const auto second = two->own_ids();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->uid != second->uid);
  CHECK(first->uid >= contexts::kFirstOwnUid);
  CHECK(first->uid <= contexts::kLastOwnUid);
  auto request = TestContext::probe_request();
  request.credentials = {first->uid, first->gid, {}};
  auto report = one.probe(std::move(request));
  CHECK(report["uid"] == std::to_string(first->uid));
  CHECK(report["groups"].empty());
  CHECK(report["CapEff"] == "0000000000000000");
  CHECK(report["NoNewPrivs"] == "1");
}

TEST_CASE("in tier uids the platform's programs keep their caller's id", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::uids, [](auto& spec) { spec.is_platform = true; });
  CHECK_FALSE(context->own_ids());
  CHECK(context.probe()["uid"] == "0");
}

TEST_CASE("without namespaces callers are known by descent", "[contexts][root]") {
  const Tier tier = GENERATE(Tier::uids, Tier::landlock);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  TestContext context(tier);
  TestContext other(tier);
  Caller inside(context);
  Caller elsewhere(other);
  CHECK(inside.is_in(context));
  CHECK_FALSE(elsewhere.is_in(context));
  CHECK_FALSE(inside.is_in_after_its_end(context));
}

TEST_CASE("without mounts HOME is another folder, and the platform's is closed",
          "[contexts][root]") {
  const Tier tier = GENERATE(Tier::uids, Tier::landlock);
  CAPTURE(contexts::name_of(tier));
  if (support::lacks_root()) return;
  // Below no folder that everybody may write in: those cannot be closed.
  std::string folder = "/run/airlock-test-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  ::chmod(folder.c_str(), 0755);
  const std::string home = folder + "/home";
  std::filesystem::create_directories(home + "/tools");
  REQUIRE(base::write_file(home + "/token", "secret", 0644));
  REQUIRE(base::write_file(home + "/.gitconfig", "[user]", 0644));
  REQUIRE(base::write_file(home + "/tools/tool", "tool", 0644));
  for (const auto* path : {"", "/tools", "/token"}) ::chmod((home + path).c_str(), 0755);
  TestContext context(tier, [&](auto& spec) {
    spec.home = home;
    spec.share = {home + "/tools", home + "/.gitconfig"};
  });
  CHECK(context->own_home() == context.runtime().home("user"));
  auto request =
      TestContext::shell("cd " + context->own_home() +
                         " && cat .gitconfig tools/tool && echo x > own && cat " + home + "/token");
  if (const auto ids = context->own_ids()) request.credentials = {ids->uid, ids->gid, {}};
  const auto output = context.run(std::move(request));
  CHECK_THAT(output.text, Catch::StartsWith("[user]tool") && Catch::Contains("token: Permission"));
  // Control: its mode lets everybody read it.
  CHECK(TestContext(Tier::none).run(TestContext::shell("cat " + home + "/token")).text == "secret");
  std::filesystem::remove_all(folder);
}

// ---- Tier userns: as a user without any privilege.

namespace {

/// What `body` returns of a userns context made as uid 1000.
std::string in_userns(const std::function<std::string(TestContext&)>& body) {
  return support::text_of_child_as(1000, [&] {
    TestContext context(Tier::userns);
    return body(context);
  });
}

}  // namespace

TEST_CASE("an unprivileged user's context runs programs as that user", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(in_userns([](TestContext& context) {
          auto report = context.probe();
          const bool is_bound =
              std::stoull(report["CapBnd"], nullptr, 16) == contexts::developer_capabilities();
          return report["uid"] + " " + report["gid"] + " " + report["ppid"] + " " +
                 report["processes"] + (is_bound ? "" : report["CapBnd"] + " ") + report["CapEff"];
        }) == "1000 1000 2 1 2 3 0000000000000000");
}

TEST_CASE("an unprivileged user is told what namespaces need", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK_THAT(support::text_of_child_as(1000,
                                       [] {
                                         TestContext context(Tier::namespaces);
                                         return "made";
                                       }),
             Catch::Contains("Operation not permitted") && Catch::Contains("CAP_SYS_ADMIN"));
  CHECK(support::text_of_child_as(1000, [] {
          const support::TempDir folder;
          const auto runtime = support::value_of(contexts::RuntimeDir::open(folder / "r"));
          std::vector<std::string> reasons;
          const Tier tier = contexts::probe_tier(runtime, support::programs_folder(), reasons).tier;
          return std::string(contexts::name_of(tier)) + " " + std::to_string(reasons.size());
        }) == "userns 1");
}

TEST_CASE("a double-forked process dies with an unprivileged context", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, []() -> std::string {
          Haunted haunted(Tier::userns);
          if (!haunted.is_alive()) return "gone too early";
          const int survivors = haunted.context->destroy().survivors;
          support::await_end_of_file(haunted.pipe.read.borrow());
          return "survivors " + std::to_string(survivors);
        }) == "survivors 0");
}

TEST_CASE("an unprivileged context shows a root that cannot be written", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK_THAT(
      in_userns([](TestContext& context) {
        return context.run(TestContext::shell("cd /; mkdir x; ls -d /bin /proc/1 /tmp")).text;
      }),
      Catch::Contains("Read-only file system") && Catch::Contains("/bin\n/proc/1\n/tmp\n"));
}

TEST_CASE("an unprivileged context keeps its own HOME and hides folders", "[contexts][root]") {
  if (support::lacks_root()) return;
  CHECK(support::text_of_child_as(1000, []() -> std::string {
          const support::TempDir folder;
          const std::string home = folder / "home";
          std::filesystem::create_directories(home + "/work");
          std::filesystem::create_directories(folder / "secret/inner");
          (void)base::write_file(home + "/token", "x", 0600);
          (void)base::write_file(home + "/.gitconfig", "[user]", 0600);
          TestContext context(Tier::userns, [&](auto& spec) {
            spec.home = home;
            spec.share = {home + "/work", home + "/.gitconfig"};
            spec.hide = {folder / "secret"};
          });
          return context
              .run(TestContext::shell("cd " + home +
                                      " && ls -A && cat .gitconfig && touch mine && "
                                      "cd ../secret && ls -A && echo end"))
              .text;
        }) == ".gitconfig\nwork\n[user]end\n");
}
