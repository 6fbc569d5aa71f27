#include "contexts/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/context_client.h"

namespace {

/// What execve(2) of `program` says in a process that has entered `ruleset`: 0 if it ran and ended
/// well, else its errno.
int exec_in(int ruleset, const char* program) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    landlock_path_beneath_attr everything{};
    everything.allowed_access = LANDLOCK_ACCESS_FS_REFER;
    everything.parent_fd = ::open("/", O_PATH | O_CLOEXEC);
    ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everything, 0);
    if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) _exit(254);
    ::execl(program, program, nullptr);
    _exit(errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a ruleset lets only its files be executed", "[contexts]") {
  if (contexts::landlock_abi() < contexts::kLandlockExecAbi) {
    WARN("NOT RUN: Landlock ABI 2 is missing");
    return;
  }
  const std::string alone = support::programs_folder() + "/airlock-stub";
  SECTION("a file") {
    const auto ruleset = support::value_of(contexts::exec_ruleset({alone, "/does/not/exist"}));
    CHECK(exec_in(ruleset.borrow(), alone.c_str()) == 126);  // it says that it is not for that
    CHECK(exec_in(ruleset.borrow(), "/bin/true") == EACCES);
  }
  SECTION("a program needs its loader, too") {
    const auto without = support::value_of(contexts::exec_ruleset({"/bin/true"}));
    CHECK(exec_in(without.borrow(), "/bin/true") == EACCES);
  }
  SECTION("a folder") {
    const auto all = support::value_of(contexts::exec_ruleset({"/usr", "/lib64", "/lib"}));
    CHECK(exec_in(all.borrow(), "/bin/true") == 0);
    CHECK(exec_in(all.borrow(), alone.c_str()) == EACCES);
  }
}
