#include "preload/stub/own_namespaces.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "wire/limits.h"
#include "wire/seizing.h"

namespace stub {
namespace {

constexpr int kMostNamespaces = 3;

std::uint64_t bounding_set() {
  std::uint64_t set = 0;
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability) == 1) set |= std::uint64_t{1} << capability;
  }
  return set;
}

/// A new user namespace comes with all of them (set_cred_user_ns, kernel/user_namespace.c).
void limit_to(std::uint64_t set) {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    const bool is_kept = capability < 64 && (set >> capability & 1) != 0;
    if (!is_kept) (void)::prctl(PR_CAPBSET_DROP, capability);
  }
}

base::Result<std::vector<base::UniqueFd>> receive_namespaces(int socket) {
  const int count = wire::hear(socket);
  if (count < 0 || count > kMostNamespaces) {
    return base::failure("namespaces for the agent's own program", count < 0 ? -count : EPROTO);
  }
  std::vector<base::UniqueFd> namespaces;
  for (int i = 0; i < count; ++i) {
    namespaces.push_back(wire::receive_fd(socket));
    if (!namespaces.back()) return base::failure("receive a namespace", ESRCH);
  }
  return namespaces;
}

}  // namespace

base::Result<void> enter_own_namespaces(int socket) {
  const timeval patience{wire::kAnswerDeadlineMs / 1000, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto namespaces = receive_namespaces(socket);
  if (!namespaces) return tl::unexpected<base::Error>(namespaces.error());
  if (const long seized = wire::await_seized(socket); seized < 0) {
    return base::failure("trace the agent's own program", static_cast<int>(-seized));
  }
  char path[PATH_MAX] = "";
  (void)!::getcwd(path, sizeof path);
  const base::UniqueFd folder(::open(".", O_PATH | O_CLOEXEC));
  const std::uint64_t allowed = bounding_set();
  for (const auto& each : *namespaces) {
    if (::setns(each.borrow(), 0) != 0) return base::os_error("enter a namespace");
  }
  limit_to(allowed);
  // By name, so that it lies in the new mounts; a folder without one stays the old one.
  if (::chdir(path) != 0 && ::fchdir(folder.borrow()) != 0) return base::os_error("chdir");
  return {};
}

}  // namespace stub
