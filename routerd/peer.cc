#include "routerd/peer.h"

#include <sys/socket.h>

#include <algorithm>

namespace routerd {

bool Peer::is_in_group(unsigned gid) const {
  return credentials.gid == gid || std::find(credentials.groups.begin(), credentials.groups.end(),
                                             gid) != credentials.groups.end();
}

base::Result<Peer> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return base::os_error("SO_PEERCRED");
  }
  Peer result;
  result.pid = peer.pid;
  result.credentials.uid = peer.uid;
  result.credentials.gid = peer.gid;
  // NGROUPS_MAX is 65536; few processes have more than this, and then the size is told.
  std::vector<gid_t> groups(64);
  for (;;) {
    size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    if (got != 0 && errno != ERANGE) return base::os_error("SO_PEERGROUPS");
    groups.resize(size / sizeof(gid_t));
    if (got == 0) break;
  }
  result.credentials.groups.assign(groups.begin(), groups.end());
  return result;
}

}  // namespace routerd
