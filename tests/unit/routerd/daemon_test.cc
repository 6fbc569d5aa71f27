// The daemon without its event loop: contexts come and go, requests are routed between them.

#include "routerd/daemon.h"

#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using contexts::ContextSpec;
using routerd::Daemon;
using routerd::HostedContext;
using support::TestContext;

namespace {

class TestDaemon {
 public:
  explicit TestDaemon(const std::string& tier = "none")
      : daemon_(support::value_of(contexts::RuntimeDir::open(folder_ / "r")),
                {.programs = support::programs_folder(), .development = true, .tier = tier}) {
    if (auto chosen = daemon_.choose_tier(); !chosen) {
      throw std::runtime_error(chosen.error().message());
    }
  }
  Daemon* operator->() { return &daemon_; }

  HostedContext& create(ContextSpec spec) {
    if (daemon_.tier() == contexts::Tier::none) spec.isolation = contexts::Isolation::none;
    return *support::value_of(daemon_.create(std::move(spec)));
  }
  int error_of_create(const std::string& name) {
    ContextSpec spec;
    spec.name = name;
    const auto created = daemon_.create(std::move(spec));
    return created ? 0 : created.error().code;
  }
  bool has_view(const std::string& name) {
    return std::filesystem::exists(daemon_.runtime().view(name));
  }
  /// What a child of `from` prints.
  std::string route(HostedContext& from, wire::ExecRequest request) {
    auto pipe = support::make_pipe();
    auto pair = support::stream_pair(SOCK_NONBLOCK);
    request.fd_numbers = {1};
    wire::Frame frame{wire::MessageType::exec_request, wire::encode(request), {}, ::getpid()};
    frame.fds.push_back(std::move(pipe.write));
    daemon_.router().route(from, std::move(frame), std::move(pair.theirs),
                           routerd::ExecRouter::Clock::now());
    support::Job job(0, std::move(pair.ours));
    job.expect<wire::Started>();
    return support::read_to_end(pipe.read.borrow());
  }

 private:
  support::TempDir folder_;
  Daemon daemon_;
};

ContextSpec named(const std::string& name, const std::string& child = {}) {
  ContextSpec spec;
  spec.name = name;
  spec.child_context = child;
  return spec;
}

}  // namespace

TEST_CASE("a daemon's contexts come and go with their folders and descriptors", "[routerd]") {
  TestDaemon daemon;
  const support::FdLeakCheck leaks;
  daemon.create(named("user"));
  daemon.create(named("platform", "user"));
  CHECK(daemon->hosted().size() == 2);
  CHECK(daemon->find("user") != nullptr);
  CHECK(daemon->find("missing") == nullptr);
  CHECK(daemon.has_view("user"));
  CHECK(std::filesystem::exists(daemon->runtime().view("platform") + "/router.sock"));
  CHECK_FALSE(std::filesystem::exists(daemon->runtime().view("user") + "/router.sock"));
  REQUIRE(daemon->destroy("platform"));
  REQUIRE(daemon->destroy("user"));
  CHECK(daemon->hosted().empty());
  CHECK_FALSE(daemon.has_view("user"));
  CHECK(daemon->destroy("user").error().code == ENOENT);
}

TEST_CASE("a context's name is taken until it is removed, or nobody has used it", "[routerd]") {
  TestDaemon daemon;
  daemon.create(named("user"));
  CHECK(daemon.error_of_create("user") == EEXIST);
  CHECK(daemon.error_of_create("Bad Name") == EINVAL);
  daemon->find("user")->is_claimable = true;
  const pid_t init = daemon->find("user")->context->init_pid();
  CHECK(daemon.error_of_create("user") == 0);
  CHECK(daemon->find("user")->context->init_pid() != init);
  CHECK(daemon.error_of_create("user") == EEXIST);
}

TEST_CASE("a context that cannot be made leaves no folder", "[routerd][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;  // looks when the daemon's remover has ended, too
  TestDaemon daemon("namespaces");
  auto spec = named("user");
  spec.hide = {"/etc/passwd"};
  CHECK_FALSE(daemon->create(std::move(spec)));
  CHECK(daemon->find("user") == nullptr);
  CHECK_FALSE(daemon.has_view("user"));
}

TEST_CASE("a tier that is asked for is the one used, or an error", "[routerd][root]") {
  if (support::lacks_root()) return;
  CHECK(TestDaemon("namespaces")->tier() == contexts::Tier::namespaces);
  CHECK(TestDaemon("none")->tier() == contexts::Tier::none);
  CHECK(TestDaemon("uids")->tier() == contexts::Tier::uids);
  CHECK(TestDaemon("landlock")->tier() == contexts::Tier::landlock);
}

TEST_CASE("a context that is made anew is filtered for anew", "[routerd]") {
  TestDaemon daemon;
  auto open = named("user");
  open.env.pass_env = {"API_TOKEN"};
  daemon.create(open);
  daemon.create(named("platform", "user"));
  auto request = TestContext::request({"/usr/bin/env"});
  request.env = {"API_TOKEN=token-of-the-child"};
  REQUIRE_THAT(daemon.route(*daemon->find("platform"), request), Catch::Contains("API_TOKEN"));
  REQUIRE(daemon->destroy("user"));
  daemon.create(named("user"));
  CHECK_THAT(daemon.route(*daemon->find("platform"), request), !Catch::Contains("API_TOKEN"));
}
