#include "contexts/shell/engine.h"

#include <unistd.h>

#include "contexts/init/spawn.h"

namespace contexts::shell {

wire::ExecRequest request_in(const std::string& folder) {
  wire::ExecRequest request;
  request.cwd = folder;
  request.state = init::own_state();
  request.state.blocked_signals = 0;
  request.state.ignored_signals = 0;
  request.state.group_leader = true;
  request.credentials = {::geteuid(), ::getegid(), {}};
  return request;
}

}  // namespace contexts::shell
