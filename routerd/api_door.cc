#include "routerd/api_door.h"

#include <sys/socket.h>
#include <unistd.h>

#include "routerd/control.h"
#include "routerd/daemon.h"

namespace routerd {
namespace {

wire::Credentials own_credentials() {
  wire::Credentials own{::geteuid(), ::getegid(), {}};
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  for (int i = 0; i < count; ++i) own.groups.push_back(groups[static_cast<std::size_t>(i)]);
  return own;
}

}  // namespace

base::Result<std::unique_ptr<Listener>> open_api_door(Daemon& daemon, const std::string& path,
                                                      unsigned uid) {
  const auto on_accept = [&daemon, uid](base::UniqueFd socket) -> std::shared_ptr<FrameSession> {
    const auto peer = peer_of(socket.borrow());
    const auto* control = daemon.find(services::kControl);
    const bool is_the_api = peer && peer->credentials.uid == uid && control != nullptr &&
                            control->context->contains(socket.borrow(), peer->pid);
    if (!is_the_api) return nullptr;
    return serve_client(daemon, daemon.io(), {peer->pid, own_credentials()}, std::move(socket),
                        Door::api);
  };
  auto listener = Listener::open(daemon.io(), path, 0600, on_accept);
  if (listener && ::geteuid() == 0 && ::chown(path.c_str(), uid, 0) != 0) {
    return base::os_error("chown " + path);
  }
  return listener;
}

}  // namespace routerd
