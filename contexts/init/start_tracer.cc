#include "contexts/init/start_tracer.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "contexts/init/beside.h"
#include "contexts/init/exec_filter.h"
#include "contexts/init/tracer.h"
#include "wire/seizing.h"

namespace contexts::init {
namespace {

struct Tracing {
  const std::string& stub;
  const wire::Credentials& user;
};

/// Files are looked at as the tracee could; capabilities that concern files go with the user id
/// (capabilities(7)), that to trace stays.
void look_at_files_as(const wire::Credentials& user) {
  ::syscall(SYS_setgroups, user.groups.size(), user.groups.data());
  ::syscall(SYS_setfsgid, user.gid);
  ::syscall(SYS_setfsuid, user.uid);
}

void trace_until_the_end(pid_t program, int socket, const void* argument) {
  const auto& [stub, user] = *static_cast<const Tracing*>(argument);
  ::prctl(PR_SET_NAME, "airlock-tracer");
  Tracer tracer(stub);
  if (tracer.seize(program, socket) != 0) return;
  look_at_files_as(user);
  ::close(socket);
  tracer.run();
}

}  // namespace

long start_tracer(const std::string& stub, const wire::Credentials& user) {
  const Tracing tracing{stub, user};
  const auto tracer = start_beside(trace_until_the_end, &tracing);
  return tracer ? wire::await_seized(tracer.borrow()) : -errno;
}

namespace {

// Steps of the trial, as exit codes of the process that does it.
enum Trial { works = 0, no_tracer = 1, no_filter = 2, not_stopped = 3 };

[[noreturn]] void try_tracing() {
  if (start_tracer("/", {::geteuid(), ::getegid(), {}}) < 0) _exit(no_tracer);
  if (trace_execs() < 0) _exit(no_filter);
  // Nobody can exec a folder, which the tracer finds out; without one the kernel says ENOSYS.
  char name[] = "trial";
  char* argv[] = {name, nullptr};
  ::execve("/", argv, argv + 1);
  _exit(errno == EACCES ? works : not_stopped);
}

}  // namespace

std::string why_not_traced() {
  const pid_t trial = ::fork();
  if (trial == 0) try_tracing();
  int status = 0;
  if (trial < 0 || ::waitpid(trial, &status, 0) != trial || !WIFEXITED(status)) {
    return "a program could not be traced";
  }
  switch (WEXITSTATUS(status)) {
    case works:
      return {};
    case no_tracer:
      return "ptrace(2) is not allowed here (seccomp profile, Yama's ptrace_scope)";
    case no_filter:
      return "seccomp(2) filters are not allowed here";
    default:
      return "a traced program's exec was not stopped (seccomp(2), SECCOMP_RET_TRACE)";
  }
}

}  // namespace contexts::init
