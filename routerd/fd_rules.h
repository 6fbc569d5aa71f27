#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "wire/message.h"

namespace routerd {

/// Why a descriptor may not enter another context; empty = it may. Folders, procfs, nsfs and
/// cgroupfs files lead out of the context's root; listening sockets, epoll, pidfd, io_uring, bpf,
/// perf and userfaultfd act on what the platform owns. O_PATH of regular files passes: an agent's
/// own sandbox needs it.
std::string refusal_of(int fd);

/// Applies the rules to a request's descriptors: refused ones numbered 3 and higher are taken out,
/// 0 to 2 become /dev/null. Returns what was refused, "5: a folder", for the route log.
std::vector<std::string> filter_fds(wire::ExecRequest& request, std::vector<base::UniqueFd>& fds,
                                    bool stdio_only);

}  // namespace routerd
