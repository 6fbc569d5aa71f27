#pragma once

#include <string>
#include <vector>

#include "contexts/context.h"
#include "routerd/ports/sockets.h"

namespace routerd {

/// A TCP port that programs of a context listen on.
struct ContextPort {
  ports::Endpoint local;
  pid_t pid = 0;        ///< of one that has it open, as the context sees it
  std::string program;  ///< that one's name, as it calls itself: any bytes
};

/// Those of `context`, by number; with `port` only that one. One that nobody listens on costs some
/// µs, others about 20 µs per process of this machine. Blocking.
base::Result<std::vector<ContextPort>> ports_of(const contexts::Context& context,
                                                std::uint16_t port = 0);

}  // namespace routerd
