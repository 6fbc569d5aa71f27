#pragma once

#include <memory>
#include <string>

#include "routerd/listener.h"

namespace routerd {

class Daemon;

/// control.sock as the control context has it: for the API's program alone. Who connects must be
/// `uid` and a process of that context. Its programs run as the daemon's own user, unless their
/// context has another: which of them may be asked for, and by whom, is the API's to decide.
base::Result<std::unique_ptr<Listener>> open_api_door(Daemon& daemon, const std::string& path,
                                                      unsigned uid);

}  // namespace routerd
