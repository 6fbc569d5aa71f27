#pragma once

#include <memory>
#include <vector>

#include "routerd/listener.h"
#include "routerd/ports/table.h"

namespace routerd::services {

/// Serves the socket that libairlock-bind asks for the ports of one service: `path`, which only
/// `owner` (and root) may connect to. A connection whose peer does not pass `is_ours` gets EPERM;
/// a port that is not among `ports` EADDRINUSE.
base::Result<std::unique_ptr<Listener>> serve_ports(boost::asio::io_context& io,
                                                    const std::string& path, uid_t owner,
                                                    ports::PortTable& table,
                                                    std::vector<ports::PortSpec> ports,
                                                    std::function<bool(int socket)> is_ours);

}  // namespace routerd::services
