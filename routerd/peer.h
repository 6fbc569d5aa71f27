#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "wire/message.h"

namespace routerd {

/// Who is at the other end of a UNIX socket, as the kernel recorded it at connect(2).
struct Peer {
  /// In this process's PID namespace; 0 = not visible from here.
  pid_t pid = 0;
  wire::Credentials credentials;

  bool is_in_group(unsigned gid) const;
};

/// SO_PEERCRED and SO_PEERGROUPS (unix(7), socket(7)).
base::Result<Peer> peer_of(int socket);

}  // namespace routerd
