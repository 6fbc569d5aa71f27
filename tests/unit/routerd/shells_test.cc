// Who gets into which shell, and what shells are told of their context.

#include "routerd/shells.h"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "routerd/exec_router.h"
#include "tests/support/context_client.h"
#include "tests/support/profiles.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using contexts::Tier;
using routerd::Shells;
using support::value_of;

namespace {

/// A context whose shells are used by peers of our choice.
class World {
 public:
  World()
      : runtime_(value_of(contexts::RuntimeDir::open(folder_ / "r"))),
        router_([this](const std::string&) { return &hosted_; }, log_,
                {{"PATH=/usr/bin:/bin"}, {}, false, support::shipped_profiles()}) {
    contexts::ContextSpec spec;
    spec.name = "user";
    spec.isolation = contexts::Isolation::none;
    hosted_.context = value_of(contexts::Context::create(
        std::move(spec), {runtime_, support::programs_folder(), Tier::none}));
    hosted_.handover = std::make_unique<routerd::Handover>(
        io_, hosted_.context->channel(), [](const wire::Frame&) {}, [] {});
    hosted_.shells = std::make_shared<Shells>(
        io_, [this] { return runtime_.add_shell("user", support::programs_folder()); });
  }

  struct Answer {
    std::string output;
    wire::NotStarted refusal;
  };
  Answer run(const std::string& text, wire::Credentials who, const std::string& shell = "default") {
    auto pair = support::stream_pair(SOCK_NONBLOCK);
    auto pipe = support::make_pipe();
    wire::ExecRequest request;
    request.path = "shell";
    request.argv = {text};
    request.policy.context = "user";
    request.policy.shell.name = shell;
    request.fd_numbers = {2, 1, 0};
    std::vector<base::UniqueFd> fds;
    fds.emplace_back(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    fds.push_back(std::move(pipe.write));
    fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    routerd::Peer peer = value_of(routerd::peer_of(pair.theirs.borrow()));
    peer.credentials = std::move(who);
    router_.run(peer, {wire::MessageType::exec_request, wire::encode(request), std::move(fds)},
                std::move(pair.theirs), routerd::ExecRouter::Clock::now());
    support::Job job(0, std::move(pair.ours));
    const auto frame = job.next();
    if (frame.type == wire::MessageType::not_started) {
      return {"", value_of(wire::decode<wire::NotStarted>(frame.payload))};
    }
    return {support::read_to_end(pipe.read.borrow()), {}};
  }
  base::Result<routerd::Handover*> start(const std::string& name) {
    return hosted_.shells->start({name, {::geteuid(), ::getegid(), {}}}, *hosted_.handover,
                                 {next_job_++, {}, "/", hosted_.context->airlock_folder()});
  }

 private:
  support::TempDir folder_;
  contexts::RuntimeDir runtime_;
  boost::asio::io_context io_;
  routerd::RouteLog log_;
  routerd::HostedContext hosted_;
  routerd::ExecRouter router_;
  std::uint64_t next_job_ = 1000;
};

const wire::Credentials kSelf{::geteuid(), ::getegid(), {}};

}  // namespace

TEST_CASE("a shell is of one user: no other one gets into it", "[routerd][shell][root]") {
  if (support::lacks_root()) return;
  World world;
  const wire::Credentials nobody{65534, 65534, {}};
  CHECK(world.run("A=root; id -u", kSelf).output == "0\n");
  CHECK(world.run("echo ${A-none}; id -u; A=nobody", nobody).output == "none\n65534\n");
  CHECK(world.run("echo $A", kSelf).output == "root\n");
  CHECK(world.run("echo $A", nobody).output == "nobody\n");
  SECTION("nor one with another group, or with others beside it") {
    CHECK(world.run("echo ${A-none}", {65534, 4, {}}).output == "none\n");
    CHECK(world.run("echo ${A-none}", {65534, 65534, {4}}).output == "none\n");
  }
}

TEST_CASE("a shell is called as contexts are", "[routerd][shell]") {
  World world;
  CHECK(world.run("echo in", kSelf, "a-1_b").output == "in\n");
  for (const char* name : {"A", "a b", "../x", "-a", "a\n", "1", "\xff"}) {
    CAPTURE(name);
    const auto refusal = world.run("echo in", kSelf, name).refusal;
    CHECK(refusal.error == EINVAL);
    CHECK(refusal.message.find("expected a lower-case letter") != std::string::npos);
  }
}

TEST_CASE("there are so many shells in a context and no more", "[routerd][shell]") {
  World world;
  for (std::size_t i = 0; i < Shells::kMost; ++i) REQUIRE(world.start("s" + std::to_string(i)));
  const auto refused = world.start("more");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == EAGAIN);
  CHECK(refused.error().message().find("64 shells already") != std::string::npos);
}

TEST_CASE("what shells are told is what is different", "[routerd][shell]") {
  const auto difference = routerd::difference;
  CHECK(difference({"A=1", "B=2"}, {"B=2", "A=1"}) == wire::ShellUpdate{});
  CHECK(difference({"A=1", "B=2", "C="}, {"A=1", "B=3", "D=4"}) ==
        wire::ShellUpdate{{"B=3", "D=4"}, {"C"}, ""});
}
