#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"

// How a program and the process that is to trace it talk, over a socket that nobody else writes to:
// numbers and descriptors, no frames. Both are airlock's own.
namespace wire {

/// A number to the other side, and one from it: -ESRCH from whoever has gone.
void tell(int socket, int number);
int hear(int socket);

/// A descriptor to the other side, and one from it: empty from whoever has gone.
void send_fd(int socket, int fd);
base::UniqueFd receive_fd(int socket);

/// In the tracer: ptrace(2) PTRACE_SEIZE of `program`. Where only its leave is missing it is
/// asked for; the program sits in await_seized(). 0 or an errno.
int seize(pid_t program, long options, int socket);
/// In the program: 0 when it has been seized, else -errno.
long await_seized(int socket);

}  // namespace wire
