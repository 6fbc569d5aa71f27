#include "tests/support/child.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "base/file.h"
#include "tests/support/fds.h"

namespace support {

Child::Child(const std::function<int()>& body) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    // Whatever happens to the test, this process does not outlive it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 99;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in a child: %s\n", error.what());
    }
    ::_exit(code);
  }
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::kill(int signal) const { ::kill(pid_, signal); }

base::WaitStatus Child::wait() {
  if (!await_readable(pidfd_.borrow())) throw std::runtime_error("the child does not end");
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return base::WaitStatus(status);
}

// No descriptor tells of a stop, so this one blocks; a test that hangs is ended by ctest.
base::WaitStatus Child::wait_stopped() {
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) {
    pid_ = -1;
    throw std::runtime_error("the child ended in place of stopping");
  }
  return base::WaitStatus(status);
}

std::string text_of_child(const std::function<std::string()>& body) {
  auto pipe = make_pipe();
  Child child([&] {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = std::string("exception: ") + error.what();
    }
    return base::write_all(pipe.write.borrow(), text) ? 0 : 1;
  });
  pipe.write.reset();
  std::string text = read_to_end(pipe.read.borrow());
  const auto status = child.wait();
  if (status.exit_code() != 0)
    text += "\nthe child ended with wait status " + std::to_string(status.raw());
  return text;
}

std::string text_of_child_as(unsigned id, const std::function<std::string()>& body) {
  return text_of_child([&]() -> std::string {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(id, id, id) != 0 ||
        ::setresuid(id, id, id) != 0) {
      return "cannot become uid " + std::to_string(id);
    }
    ::prctl(PR_SET_DUMPABLE, 1);
    return body();
  });
}

}  // namespace support
