// An init's programs under a tracer: what every exec becomes, and what stays as it is. echo is the
// stub here: it prints the words it was exec'ed with.

#include <signal.h>

#include <catch2/catch.hpp>

#include "contexts/mechanism.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"

using contexts::Tier;
using support::TestContext;

namespace {

/// A context whose programs are traced.
class Traced {
 public:
  explicit Traced(Tier tier) : context_(tier) {}

  support::Output run(wire::ExecRequest request, const std::string& stub = "/bin/echo") {
    wire::Confinement traced;
    traced.mechanism = static_cast<std::uint8_t>(contexts::Mechanism::ptrace);
    traced.stub = stub;
    return context_.run(std::move(request), std::move(traced));
  }

 private:
  TestContext context_;
};

}  // namespace

TEST_CASE("a traced program's execs become execs of the stub", "[contexts][root]") {
  if (support::lacks_root()) return;
  const support::FdLeakCheck leaks;
  const Tier tier = GENERATE(Tier::namespaces, Tier::none);
  CAPTURE(contexts::name_of(tier));
  Traced traced(tier);
  // echo in place of ls: the words arrive as they were meant for ls.
  CHECK(traced.run(TestContext::shell("ls one 'two  words'; exit 3")).text == "one two  words\n");
  CHECK(traced.run(TestContext::shell("ls x | read y; exit 3")).exited.wait_status == 0x0300);
  CHECK(traced.run(TestContext::shell("exec /bin/ls replaced")).text == "replaced\n");
}

TEST_CASE("an exec that fails leaves a traced program as it was", "[contexts][root]") {
  if (support::lacks_root()) return;
  Traced traced(Tier::namespaces);
  const auto missing = traced.run(TestContext::shell("/does/not/exist; echo $?"));
  CHECK_THAT(missing.text, Catch::EndsWith("127\n"));
  const auto folder = traced.run(TestContext::shell("/etc; echo $?"));
  CHECK_THAT(folder.text, Catch::EndsWith("126\n"));
}

TEST_CASE("without its stub a traced program starts nothing", "[contexts][root]") {
  if (support::lacks_root()) return;
  Traced traced(Tier::namespaces);
  const auto ended = traced.run(TestContext::shell("/bin/echo leaked; echo $?"), "/does/not/exist");
  CHECK_THAT(ended.text, !Catch::Contains("leaked"));
}

TEST_CASE("a traced program ends with its own status", "[contexts][root]") {
  if (support::lacks_root()) return;
  Traced traced(Tier::namespaces);
  CHECK(traced.run(TestContext::shell("exit 7")).exited.wait_status == 0x0700);
  CHECK(traced.run(TestContext::shell("kill -TERM $$")).exited.wait_status == SIGTERM);
  CHECK(traced.run(TestContext::shell("kill -KILL $$")).exited.wait_status == SIGKILL);
}

TEST_CASE("a traced program dies with its tracer", "[contexts][root]") {
  if (support::lacks_root()) return;
  Traced traced(Tier::namespaces);
  const auto ended = traced.run(TestContext::shell(
      "while read key value; do [ \"$key\" = TracerPid: ] && kill -KILL $value; done "
      "</proc/self/status; while :; do :; done"));
  CHECK(ended.exited.wait_status == SIGKILL);
}

TEST_CASE("a context tells whether its programs can be traced", "[contexts][root]") {
  if (support::lacks_root()) return;
  TestContext context(Tier::namespaces,
                      [](contexts::ContextSpec& spec) { spec.child_context = "other"; });
  CHECK(context->ptrace_error().empty());
}
