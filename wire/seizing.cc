#include "wire/seizing.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace wire {
namespace {

/// Asks the program for its leave; any other number is what came of seizing it, negated.
constexpr int kLeave = 1;

}  // namespace

void tell(int socket, int number) { (void)!::write(socket, &number, sizeof number); }

int hear(int socket) {
  int number = 0;
  ssize_t got = -1;
  do {
    got = ::read(socket, &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  return got == sizeof number ? number : -ESRCH;
}

namespace {

/// A message of one byte with room for one descriptor (unix(7), SCM_RIGHTS).
struct FdMessage {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  FdMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

}  // namespace

void send_fd(int socket, int fd) {
  FdMessage message;
  cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  (void)::sendmsg(socket, &message.header, MSG_NOSIGNAL);
}

base::UniqueFd receive_fd(int socket) {
  FdMessage message;
  int fd = -1;
  if (::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) == 1) {
    const cmsghdr* part = CMSG_FIRSTHDR(&message.header);
    if (part != nullptr) std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  }
  return base::UniqueFd(fd);
}

int seize(pid_t program, long options, int socket) {
  const auto attempt = [&] {
    return ::syscall(SYS_ptrace, PTRACE_SEIZE, program, 0, options) == 0 ? 0 : errno;
  };
  int error = attempt();
  if (error == EPERM) {
    tell(socket, kLeave);
    tell(socket, ::getpid());
    (void)hear(socket);
    error = attempt();
  }
  tell(socket, -error);
  return error;
}

// An unprivileged tracer needs our leave twice: dumpable memory (ptrace(2)), and Yama's. Only as
// long as it takes.
long await_seized(int socket) {
  int answer = hear(socket);
  if (answer != kLeave) return answer;
  ::prctl(PR_SET_PTRACER, hear(socket));
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  ::prctl(PR_SET_DUMPABLE, 1);
  tell(socket, 0);
  answer = hear(socket);
  ::prctl(PR_SET_DUMPABLE, dumpable);
  ::prctl(PR_SET_PTRACER, 0);
  return answer;
}

}  // namespace wire
