#include "routerd/ancestry.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "routerd/program.h"
#include "tests/support/child.h"
#include "tests/support/fds.h"

using support::Child;

namespace {

routerd::AgentIdentity agent_of(const routerd::FileId& runtime) {
  routerd::AgentIdentity agent;
  agent.runtimes = {runtime};
  return agent;
}

}  // namespace

TEST_CASE("the parent of a process, and what it runs", "[routerd]") {
  CHECK(routerd::parent_of(::getpid()) == ::getppid());
  CHECK(routerd::parent_of(0x7fffffff) == 0);
  CHECK(routerd::executable_of(::getpid()) == routerd::file_id("/proc/self/exe"));
  CHECK_FALSE(routerd::executable_of(0x7fffffff).is_known());
}

TEST_CASE("a variable of an ancestor is found, the nearest first", "[routerd]") {
  auto [told, tell] = support::make_pipe();
  auto [hold, held] = support::make_pipe();
  const int out = tell.borrow(), in = hold.borrow();
  // environ of a process is what it was exec'ed with; this chain ends with one that has nothing.
  const Child shell([out, in] {
    ::dup2(out, 1);
    ::dup2(in, 0);
    ::setenv("OUTER", "outer", 1);
    ::setenv("BOTH", "outer", 1);
    ::execl("/bin/sh", "sh", "-c",
            "env -i BOTH=inner sh -c 'env -i sh -c '\\''echo $$; read x; :'\\''; :'; :", nullptr);
    return 127;
  });
  tell.reset();
  std::string line;
  for (char c = 0; ::read(told.borrow(), &c, 1) == 1 && c != '\n';) line += c;
  const pid_t inner = std::atoi(line.c_str());
  REQUIRE(inner > 0);
  using routerd::inherited_variable;
  CHECK(inherited_variable(inner, ::getpid(), "OUTER") == "outer");
  CHECK(inherited_variable(inner, ::getpid(), "BOTH") == "inner");
  CHECK(inherited_variable(inner, ::getpid(), "MISSING").empty());
  CHECK(inherited_variable(inner, shell.pid(), "OUTER").empty());
  CHECK(inherited_variable(inner, shell.pid(), "BOTH") == "inner");
  held.reset();  // ends them
}

TEST_CASE("who started a process is told by its parent's file", "[routerd]") {
  const Child child([] {
    ::pause();
    return 0;
  });
  const auto own = routerd::file_id("/proc/self/exe");
  const auto other = routerd::file_id("/bin/true");
  CHECK(is_started_by(agent_of(own), child.pid(), 0));
  CHECK_FALSE(is_started_by(agent_of(other), child.pid(), 0));
  // Its spawner runs what the init runs.
  CHECK(is_started_by(agent_of(other), child.pid(), ::getpid()));
  auto touched = own;
  touched.changed += 1;
  CHECK(is_started_by(agent_of(touched), child.pid(), 0));
  CHECK_FALSE(is_started_by(agent_of(own), 0x7fffffff, 0));
}
