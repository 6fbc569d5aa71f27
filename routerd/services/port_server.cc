#include "routerd/services/port_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace routerd::services {
namespace {

/// The socket to give away, or why there is none.
base::Result<int> choose(const wire::Frame& frame, ports::PortTable& table,
                         const std::vector<ports::PortSpec>& ports) {
  auto request = frame.type == wire::MessageType::port_request
                     ? wire::decode<wire::PortRequest>(frame.payload)
                     : base::failure("port request", EBADMSG);
  if (!request) return tl::unexpected<base::Error>(request.error());
  const bool is_tcp = request->protocol == wire::PortProtocol::tcp;
  const ports::PortKey key{is_tcp ? ports::Protocol::tcp : ports::Protocol::udp, request->port};
  const bool is_its_own =
      std::any_of(ports.begin(), ports.end(), [&key](const auto& port) { return port.key == key; });
  auto* held = is_its_own ? table.find(key) : nullptr;
  if (held == nullptr) return base::failure(to_string(key), EADDRINUSE);
  if (auto exposed = held->expose(request->address); !exposed) {
    return tl::unexpected<base::Error>(exposed.error());
  }
  return held->socket();
}

}  // namespace

base::Result<std::unique_ptr<Listener>> serve_ports(boost::asio::io_context& io,
                                                    const std::string& path, uid_t owner,
                                                    ports::PortTable& table,
                                                    std::vector<ports::PortSpec> ports,
                                                    std::function<bool(int socket)> is_ours) {
  auto on_frame = [&table, ports = std::move(ports), is_ours = std::move(is_ours)](
                      FrameSession& session, const wire::Frame& frame) {
    auto chosen = is_ours(session.socket()) ? choose(frame, table, ports)
                                            : base::failure("port request", EPERM);
    const base::UniqueFd connection = session.release();
    if (chosen) {
      const int socket[] = {*chosen};
      (void)wire::send_message(connection.borrow(), wire::PortGrant{0}, socket, MSG_DONTWAIT);
    } else {
      (void)wire::send_message(connection.borrow(), wire::PortGrant{chosen.error().code}, {},
                               MSG_DONTWAIT);
    }
    return false;
  };
  auto listener =
      Listener::open(io, path, 0600, [&io, on_frame = std::move(on_frame)](base::UniqueFd socket) {
        return std::make_shared<FrameSession>(io, std::move(socket), on_frame);
      });
  if (listener && ::geteuid() == 0 && ::chown(path.c_str(), owner, 0) != 0) {
    return base::os_error("chown " + path);
  }
  return listener;
}

}  // namespace routerd::services
