#include "contexts/shell/engine.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

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

base::Result<base::UniqueFd> make_complaints() {
  base::UniqueFd memfd(static_cast<int>(::syscall(SYS_memfd_create, "airlock-shell", 1u)));
  if (!memfd) return base::os_error("memfd_create");
  return memfd;
}

std::string read_complaints(int complaints) {
  char block[512];
  const ssize_t n = ::pread(complaints, block, sizeof block, 0);
  std::string line(block, n > 0 ? static_cast<std::size_t>(n) : 0);
  line.resize(std::min(line.find('\n'), line.size()));
  constexpr std::string_view kPrefix = "bash: line 1: ";
  return line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line;
}

}  // namespace contexts::shell
