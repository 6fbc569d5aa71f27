// The router between two contexts of tier none, where this test may be anybody's program: requests
// go in as frames, jobs come out of real inits.

#include "routerd/exec_router.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/profiles.h"
#include "tests/support/requires.h"
#include "wire/limits.h"

using contexts::ContextSpec;
using contexts::Tier;
using routerd::HostedContext;
using support::TestContext;

namespace {

class World {
 public:
  explicit World(std::vector<std::string> secrets = {})
      : runtime_(support::value_of(contexts::RuntimeDir::open(folder_ / "r"))),
        router_([this](const std::string& name) { return find(name); }, log_,
                {{"PATH=/usr/bin:/bin", "LANG=C", "DAEMON=x"},
                 std::move(secrets),
                 false,
                 support::shipped_profiles()}) {}

  HostedContext& add(ContextSpec spec, Tier tier = Tier::none) {
    if (tier == Tier::none) spec.isolation = contexts::Isolation::none;
    spec.enforce = contexts::Mechanism::preload;
    auto hosted = std::make_unique<HostedContext>();
    const std::string name = spec.name;
    hosted->context = support::value_of(
        contexts::Context::create(std::move(spec), {runtime_, support::programs_folder(), tier}));
    REQUIRE(hosted->context->await_walls());
    hosted->offers = routerd::offers_of(*hosted->context);
    hosted->handover = std::make_unique<routerd::Handover>(
        io_, hosted->context->channel(), [](wire::Frame) {}, [] {});
    return *(hosted_[name] = std::move(hosted));
  }
  void remove(const std::string& name) { hosted_.erase(name); }
  HostedContext* find(const std::string& name) {
    const auto found = hosted_.find(name);
    return found == hosted_.end() ? nullptr : found->second.get();
  }

  /// What a stub of `from` would send; the answers come on the job.
  support::Job route(HostedContext& from, wire::ExecRequest request,
                     std::vector<base::UniqueFd> fds = {}) {
    return route_bytes(from, wire::MessageType::exec_request, wire::encode(request),
                       std::move(fds));
  }
  support::Job route_bytes(HostedContext& from, wire::MessageType type, std::string payload,
                           std::vector<base::UniqueFd> fds = {}) {
    auto pair = support::stream_pair(SOCK_NONBLOCK);
    router_.route(from, {type, std::move(payload), std::move(fds), ::getpid()},
                  std::move(pair.theirs), routerd::ExecRouter::Clock::now());
    return {0, std::move(pair.ours)};
  }
  /// What a client of the control socket would send.
  support::Job run(wire::ExecRequest request, std::vector<base::UniqueFd> fds = {}) {
    auto pair = support::stream_pair(SOCK_NONBLOCK);
    const auto peer = support::value_of(routerd::peer_of(pair.theirs.borrow()));
    router_.run(peer, {wire::MessageType::exec_request, wire::encode(request), std::move(fds)},
                std::move(pair.theirs), routerd::ExecRouter::Clock::now());
    return {0, std::move(pair.ours)};
  }
  routerd::RouteLog& log() { return log_; }
  const routerd::RouteRecord& last() { return log_.records().back(); }
  routerd::ExecRouter& router() { return router_; }

 private:
  support::TempDir folder_;
  contexts::RuntimeDir runtime_;
  boost::asio::io_context io_;
  routerd::RouteLog log_;
  std::map<std::string, std::unique_ptr<HostedContext>> hosted_;
  routerd::ExecRouter router_;
};

ContextSpec user() {
  ContextSpec spec;
  spec.name = "user";
  return spec;
}

ContextSpec platform() {
  ContextSpec spec;
  spec.name = "platform";
  spec.child_context = "user";
  return spec;
}

/// The output of a request that is sent with a pipe as its descriptor 1.
template <class Send>
std::string output_of(Send send, wire::ExecRequest request) {
  auto pipe = support::make_pipe();
  request.fd_numbers = {1};
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(pipe.write));
  auto job = send(std::move(request), std::move(fds));
  job.template expect<wire::Started>();
  return support::read_to_end(pipe.read.borrow());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string routed_output(World& world, HostedContext& from, wire::ExecRequest request) {
  return output_of(
      [&](auto sent, auto fds) { return world.route(from, std::move(sent), std::move(fds)); },
      std::move(request));
}

std::string run_output(World& world, wire::ExecRequest request) {
  return output_of([&](auto sent, auto fds) { return world.run(std::move(sent), std::move(fds)); },
                   std::move(request));
}

wire::NotStarted refusal(support::Job job) { return job.expect<wire::NotStarted>(); }

}  // namespace

TEST_CASE("a child is routed with the environment of its target", "[routerd]") {
  const support::FdLeakCheck leaks;
  World world({"configured-secret"});
  auto spec = user();
  spec.env.pinned = {"PINNED=yes"};
  world.add(spec).is_claimable = true;
  HostedContext& from = world.add(platform());
  routerd::Launch launch;
  launch.start_env = {"PATH=/usr/bin:/bin", "API_TOKEN=the-platform-token", "SAME=1"};
  (void)from.launches.add(std::move(launch));
  auto request = TestContext::request({"/usr/bin/env"});
  request.env = {
      "PATH=/usr/bin:/bin",          "API_TOKEN=the-platform-token", "SAME=1",          "NEW=2",
      "COPY=x-the-platform-token-x", "OTHER=configured-secret",      "LD_PRELOAD=/x.so"};
  const auto env = lines_of(routed_output(world, from, std::move(request)));
  CHECK(env == std::vector<std::string>{"PATH=/usr/bin:/bin", "NEW=2", "LANG=C", "PINNED=yes"});
  CHECK_FALSE(world.find("user")->is_claimable);
  CHECK(world.last().outcome == "run_in");
  CHECK(world.last().from == "platform");
  CHECK(world.last().to == "user");
  CHECK(world.last().program == "/usr/bin/env");
  CHECK(world.last().rule == "child_context");
  CHECK(world.last().pid == ::getpid());
  CHECK(world.last().uid == ::getuid());
  CHECK(world.last().job != 0);
  CHECK(world.last().time_ms > 1'600'000'000'000);
  CHECK(world.last().blocked_env == std::vector<std::string>{"COPY: secret_value",
                                                             "OTHER: secret_value",
                                                             "LD_PRELOAD: loader"});
}

TEST_CASE("each target has a filter of its own", "[routerd]") {
  World world;
  auto open = user();
  open.name = "open";
  open.env.pass_env = {"API_TOKEN"};
  world.add(open);
  world.add(user());
  auto spec = platform();
  spec.routes = {{"/never", contexts::RuleAction::route, "open"}};
  HostedContext& from = world.add(spec);
  const auto env_in = [&](const std::string& target) {
    auto request = TestContext::request({"/usr/bin/env"});
    request.env = {"API_TOKEN=token-of-the-child", "SANDBOX_ROUTE_TO_CONTEXT=" + target};
    return routed_output(world, from, std::move(request));
  };
  CHECK_THAT(env_in("open"), Catch::Contains("API_TOKEN=token-of-the-child"));
  CHECK_THAT(env_in("user"), !Catch::Contains("API_TOKEN"));
}

TEST_CASE("descriptors that may not enter are dropped and noted", "[routerd]") {
  World world;
  world.add(user());
  HostedContext& from = world.add(platform());
  auto pipe = support::make_pipe();
  auto request =
      TestContext::shell("[ -e /proc/$$/fd/5 ] && echo has 5; [ -e /proc/$$/fd/6 ] || echo no 6");
  request.fd_numbers = {1, 5, 6};
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(pipe.write));
  fds.push_back(support::marked_fd("five"));
  fds.push_back(support::value_of(base::open_file("/", O_RDONLY)));
  auto job = world.route(from, std::move(request), std::move(fds));
  job.expect<wire::Started>();
  CHECK(support::read_to_end(pipe.read.borrow()) == "has 5\nno 6\n");
  CHECK(world.last().refused_fds == std::vector<std::string>{"6: a folder"});
}

TEST_CASE("what a stub says of policy and credentials is ignored", "[routerd]") {
  World world;
  world.add(user());
  HostedContext& from = world.add(platform());
  auto request = TestContext::shell("id -u; id -g");
  request.credentials = {12345, 12345, {12345}};
  request.policy.context = "elsewhere";
  request.policy.env = wire::EnvMode::exact;
  request.policy.time_limit_ms = 1;
  request.policy.launch = true;
  request.tty = wire::TtyMode::hand_over;
  CHECK(routed_output(world, from, std::move(request)) ==
        std::to_string(::getuid()) + "\n" + std::to_string(::getgid()) + "\n");

  auto by_name = TestContext::request({"true"});
  by_name.search_path = true;
  auto job = world.route(from, std::move(by_name));
  job.expect<wire::Started>();
  CHECK(job.expect<wire::NotStarted>().exit_code == 127);
}

TEST_CASE("a requester of a routed child that goes away takes it along", "[routerd]") {
  World world;
  world.add(user());
  HostedContext& from = world.add(platform());
  auto pipe = support::make_pipe();
  auto request = TestContext::request({"/bin/sleep", "1000"});
  request.fd_numbers = {3};
  request.on_disconnect = wire::OnDisconnect::keep;
  std::vector<base::UniqueFd> fds;
  fds.push_back(std::move(pipe.write));
  auto job = world.route(from, std::move(request), std::move(fds));
  job.expect<wire::Started>();
  job.disconnect();
  support::await_end_of_file(pipe.read.borrow());
}

TEST_CASE("a request from outside the context is refused", "[routerd][root]") {
  if (support::lacks_root()) return;
  World world;
  world.add(user());
  HostedContext& from = world.add(platform(), Tier::namespaces);
  const auto refused = refusal(world.route(from, TestContext::request({"/bin/true"})));
  CHECK(refused.exit_code == 126);
  CHECK(refused.message == "the request does not come from context 'platform'");
  CHECK(world.last().rule == "identity");
  CHECK(world.last().outcome == "refuse");
}

TEST_CASE("a target that is not there is refused", "[routerd]") {
  World world;
  HostedContext& from = world.add(platform());
  const auto refused = refusal(world.route(from, TestContext::request({"/bin/true"})));
  CHECK(refused.exit_code == 126);
  CHECK(refused.message == "context 'user' does not exist (any more)");
}

TEST_CASE("a target whose init is gone takes no jobs", "[routerd][root]") {
  if (support::lacks_root()) return;
  World world;
  HostedContext& target = world.add(user(), Tier::namespaces);
  HostedContext& from = world.add(platform());
  target.context->destroy();
  const auto refused = refusal(world.route(from, TestContext::request({"/bin/true"})));
  CHECK(refused.exit_code == 126);
  CHECK_THAT(refused.message, Catch::Contains("takes no jobs"));
  CHECK(world.last().outcome == "refuse");
}

TEST_CASE("a rule of the context refuses or runs here", "[routerd]") {
  World world;
  world.add(user());
  auto spec = platform();
  spec.routes = {{"/bin/no", contexts::RuleAction::refuse, {}},
                 {"/work/tool", contexts::RuleAction::here, {}}};
  HostedContext& from = world.add(spec);
  const auto refused = refusal(world.route(from, TestContext::request({"/bin/no"})));
  CHECK(refused.exit_code == 126);
  CHECK(refused.message == "/bin/no is refused by a rule of context 'platform'");
  CHECK(world.last().rule == "routes[0]");

  routerd::Launch launch;
  const auto id = from.launches.add(std::move(launch)).id;
  auto request = TestContext::request({"tool"});
  request.path = "tool";
  request.cwd = "/work";
  request.env = {"LD_PRELOAD=/other.so"};
  const auto here = world.route(from, std::move(request)).expect<wire::RunHere>();
  CHECK(here.path == "tool");
  CHECK(here.env == wire::StringList{"LD_PRELOAD=" + from.context->airlock_folder() +
                                         "/libairlock-preload.so:/other.so",
                                     "AIRLOCK_LAUNCH=" + std::to_string(id)});
  CHECK(world.last().outcome == "run_here");
  CHECK(world.last().to == "platform");
}

TEST_CASE("a request that makes no sense is refused and leaks nothing", "[routerd]") {
  World world;
  world.add(user());
  HostedContext& from = world.add(platform());
  const support::FdLeakCheck leaks;
  const auto refused = [&](wire::ExecRequest request, std::size_t fds) {
    return refusal(world.route(from, std::move(request), support::marked_fds(fds)));
  };
  auto request = TestContext::request({"/bin/true"});
  request.fd_numbers = {0, 1};
  CHECK(refused(request, 1).error == EBADMSG);
  CHECK(refused(request, 3).error == EBADMSG);
  request.fd_numbers = {1, 1};
  CHECK(refused(request, 2).error == EBADMSG);
  request.fd_numbers = {0, (1u << 20) + 1};
  CHECK(refused(request, 2).error == EBADMSG);
  request.fd_numbers = {UINT32_MAX};
  CHECK(refused(request, 1).error == EBADMSG);
  request = TestContext::request({""});
  CHECK(refused(request, 0).error == ENOENT);
  request = TestContext::request({"/bin/true"});
  request.cwd = "relative";
  CHECK(refused(request, 0).error == EINVAL);
  request = TestContext::request({"/bin/true", std::string(wire::kMaxArgString, 'x')});
  CHECK(refused(request, 0).error == E2BIG);
  request = TestContext::request({"/bin/true"});
  request.env.add("A=" + std::string(wire::kMaxArgString, 'x'));
  CHECK(refused(request, 0).error == E2BIG);
  CHECK(refusal(world.route_bytes(from, wire::MessageType::exec_request, "garbage",
                                  support::marked_fds(2)))
            .error == EBADMSG);
  CHECK(world.route_bytes(from, wire::MessageType::control, "{}").is_closed_by_init());
}

TEST_CASE("a context's user is who its programs run as", "[routerd][root]") {
  if (support::lacks_root()) return;
  World world;
  HostedContext& from = world.add(platform());
  const auto id_as = [&](const std::string& name) {
    auto spec = user();
    spec.user = name;
    world.remove("user");
    world.add(spec);
    return routed_output(world, from, TestContext::shell("id -u; id -g"));
  };
  CHECK(id_as("nobody") == "65534\n65534\n");
  CHECK(id_as("54321") == "54321\n54321\n");
  CHECK(id_as("root") == "0\n0\n");
  auto spec = user();
  spec.user = "no-such-user";
  world.remove("user");
  world.add(spec);
  const auto refused = refusal(world.route(from, TestContext::request({"/bin/true"})));
  CHECK_THAT(refused.message, Catch::Contains("user 'no-such-user'"));
  CHECK(world.last().rule == "user");
}

TEST_CASE("only a context that is named may make its callers root", "[routerd][root]") {
  if (support::lacks_root()) return;
  const auto answer_to = [](const std::vector<std::string>& allowed) {
    return support::text_of_child_as(1000, [&] {
      World world;
      auto spec = user();
      spec.user = "root";
      spec.allow_root_from = allowed;
      world.add(spec);
      HostedContext& from = world.add(platform());
      auto job = world.route(from, TestContext::request({"/bin/true"}));
      auto frame = job.next();
      if (frame.type == wire::MessageType::started) frame = job.next();
      return support::value_of(wire::decode<wire::NotStarted>(frame.payload)).message;
    });
  };
  CHECK(answer_to({}) ==
        "run as root in context 'user': Operation not permitted (the caller is not root and "
        "allow_root_from does not name its context)");
  CHECK_THAT(answer_to({"other"}), Catch::Contains("allow_root_from does not name"));
  // Allowed; this unprivileged init then cannot.
  CHECK_THAT(answer_to({"platform"}), Catch::Contains("cannot become uid 0"));
}

TEST_CASE("a uid that is none is refused", "[routerd]") {
  const std::string uid = GENERATE("4294967295", "4294967296", "99999999999999999999999");
  CAPTURE(uid);
  World world;
  auto spec = user();
  spec.user = uid;
  world.add(spec);
  HostedContext& from = world.add(platform());
  CHECK_NOTHROW([&] {
    auto job = world.route(from, TestContext::request({"/bin/true"}));
    auto frame = job.next();
    if (frame.type == wire::MessageType::started) frame = job.next();
    if (frame.type != wire::MessageType::not_started) throw std::runtime_error("it ran");
  }());
}

// ---- Requests of the control socket.

namespace {

wire::ExecRequest in_context(wire::ExecRequest request, const std::string& context) {
  request.policy.context = context;
  return request;
}

}  // namespace

TEST_CASE("a client runs programs in the context it names", "[routerd]") {
  const support::FdLeakCheck leaks;
  World world;
  auto spec = user();
  spec.cwd = "/usr";
  world.add(spec);
  auto request = in_context(TestContext::shell("pwd"), "user");
  request.cwd = "";
  CHECK(run_output(world, std::move(request)) == "/usr\n");
  CHECK(world.last().rule == "exec");
  CHECK(world.last().to == "user");
  const auto refused =
      refusal(world.run(in_context(TestContext::request({"/bin/true"}), "missing")));
  CHECK(refused.exit_code == 126);
  CHECK_THAT(refused.message, Catch::Contains("there is no context 'missing'"));
}

TEST_CASE("a client's environment is exact, or the context's with its additions", "[routerd]") {
  World world;
  auto spec = user();
  spec.env.pinned = {"PINNED=1", "BOTH=pinned"};
  world.add(spec);
  auto request = in_context(TestContext::request({"/usr/bin/env"}), "user");
  request.env = {"ONLY=this", "BOTH=mine"};
  request.policy.env = wire::EnvMode::exact;
  CHECK(run_output(world, request) == "ONLY=this\nBOTH=mine\n");
  request.policy.env = wire::EnvMode::context;
  const auto env = lines_of(run_output(world, request));
  const auto has = [&env](const std::string& entry) {
    return std::count(env.begin(), env.end(), entry) == 1;
  };
  CHECK(has("PATH=/usr/bin:/bin"));
  CHECK(has("LANG=C"));
  CHECK(has("PINNED=1"));
  CHECK(has("BOTH=mine"));
  CHECK(has("ONLY=this"));
  CHECK_FALSE(has("DAEMON=x"));
  CHECK(std::any_of(env.begin(), env.end(), [](const auto& e) { return e.starts_with("HOME="); }));
}

TEST_CASE("an agent is launched with the interposer and a launch of its own", "[routerd]") {
  World world;
  world.add(user());
  auto spec = platform();
  spec.route_child = contexts::RouteChild::always;
  HostedContext& context = world.add(spec);
  auto request = in_context(TestContext::request({"/usr/bin/env"}), "platform");
  request.env = {"PATH=/usr/bin:/bin", "A=1"};
  CHECK(lines_of(run_output(world, request)) ==
        std::vector<std::string>{
            "PATH=/usr/bin:/bin", "A=1",
            "LD_PRELOAD=" + context.context->airlock_folder() + "/libairlock-preload.so",
            "AIRLOCK_LAUNCH=1"});
  const auto& launch = context.launches.find({"AIRLOCK_LAUNCH=1"});
  CHECK(launch.start_env == contexts::Environment{"PATH=/usr/bin:/bin", "A=1"});
  CHECK(launch.agent.executable == std::filesystem::canonical("/usr/bin/env"));
  CHECK(launch.base == contexts::EnvPolicy::Base::clean);
  request.policy.launch = true;
  (void)run_output(world, request);
  CHECK(context.launches.find({"AIRLOCK_LAUNCH=2"}).base == contexts::EnvPolicy::Base::inherit);
  CHECK(world.last().rule == "run");
}

TEST_CASE("whose children are routed follows from route_child", "[routerd]") {
  const support::TempDir folder;
  for (const auto* name : {"claude", "other"}) {
    REQUIRE(base::write_file(folder / name, "#!/bin/sh\necho ${AIRLOCK_LAUNCH+launched}\n", 0755));
  }
  World world;
  world.add(user());
  const auto is_launched = [&](contexts::RouteChild route, const std::string& path) {
    auto spec = platform();
    spec.route_child = route;
    world.remove("platform");
    world.add(spec);
    auto request = in_context(TestContext::request({path}), "platform");
    return run_output(world, std::move(request)) == "launched\n";
  };
  using contexts::RouteChild;
  CHECK(is_launched(RouteChild::always, folder / "other"));
  CHECK_FALSE(is_launched(RouteChild::never, folder / "other"));
  CHECK_FALSE(is_launched(RouteChild::automatic, folder / "other"));
  CHECK(is_launched(RouteChild::automatic, folder / "claude"));
  CHECK_FALSE(is_launched(RouteChild::never, folder / "claude"));
}

TEST_CASE("what could not be routed is not launched", "[routerd]") {
  World world;
  world.add(user());
  auto spec = platform();
  spec.enforce = contexts::Mechanism::preload;
  world.add(spec);
  const auto launch_in = [&](const std::string& context, const std::string& program) {
    auto request = in_context(TestContext::request({program}), context);
    request.policy.launch = true;
    return refusal(world.run(std::move(request)));
  };
  const auto is_static = launch_in("platform", support::programs_folder() + "/airlock-stub");
  CHECK(is_static.exit_code == 126);
  CHECK_THAT(is_static.message, Catch::Contains("statically linked"));
  const auto missing = launch_in("platform", "/does/not/exist");
  CHECK(missing.exit_code == 127);
  CHECK_THAT(missing.message, Catch::Contains("command not found"));
  const auto closed = launch_in("platform", "/etc/passwd");
  CHECK(closed.exit_code == 126);
  const auto nowhere = launch_in("user", "/bin/true");
  CHECK(nowhere.exit_code == 126);
  CHECK_THAT(nowhere.message, Catch::Contains("has no child_context"));
}

TEST_CASE("explain decides without running anything", "[routerd]") {
  World world;
  auto spec = platform();
  spec.routes = {{"/usr/bin/env", contexts::RuleAction::refuse, {}}};
  HostedContext& from = world.add(spec);
  CHECK(world.router().explain(from, "sh", {"sh"}).context == "user");
  CHECK(world.router().explain(from, "env", {"env"}).outcome == routerd::Outcome::refuse);
  CHECK(world.router().explain(from, "no-such", {"no-such"}).context == "user");
  CHECK(world.log().records().empty());
}
