#include "routerd/tier_advice.h"

#include <nlohmann/json.hpp>

namespace routerd {

using contexts::Tier;

std::string_view weakness_of(Tier tier) {
  switch (tier) {
    case Tier::namespaces:
      return "";
    case Tier::userns:
      return "su, sudo, chown to other users and apt-get do not work inside: only one user id is "
             "mapped";
    case Tier::uids:
      return "processes of all contexts are visible in ps, command lines included; contexts share "
             "/tmp, /dev/shm and the whole file system, as far as file modes let them; setuid "
             "programs have no effect";
    case Tier::landlock:
      return "as uids, and all contexts have one user id: files of one context outside HOME, the "
             "runtime folder and hidden folders can be read and changed by the others";
    case Tier::none:
      return "nothing keeps contexts apart: their programs can see, read and kill each other, the "
             "agent and airlock";
  }
  return "";
}

TierOptions options_for(Tier tier) {
  switch (tier) {
    case Tier::namespaces:
      return {"docker run --cap-add SYS_ADMIN", "podman run --cap-add SYS_ADMIN",
              "securityContext: {capabilities: {add: [SYS_ADMIN]}}", "start it as root"};
    case Tier::userns:
      return {
          "docker run --user N --security-opt systempaths=unconfined --security-opt "
          "seccomp=PROFILE, with a PROFILE that allows clone, unshare, mount, umount2 and "
          "pivot_root",
          "podman run --user N --security-opt unmask=ALL",
          "securityContext: {procMount: Unmasked} and a seccompProfile that allows user "
          "namespaces",
          "sysctl user.max_user_namespaces > 0; Ubuntu 24.04: sysctl "
          "kernel.apparmor_restrict_unprivileged_userns=0"};
    case Tier::uids:
      return {"docker run, as root", "podman run, as root",
              "securityContext: {runAsUser: 0}, capabilities SETUID, SETGID and CHOWN not dropped",
              "start it as root"};
    case Tier::landlock:
      return {"docker run --user N, kernel 6.12 or later with Landlock on, Docker 23 or later",
              "podman run --user N, kernel 6.12 or later with Landlock on",
              "nodes with kernel 6.12 or later, Landlock in their lsm= list",
              "kernel 6.12 or later, landlock in the lsm= list"};
    case Tier::none:
      return {};
  }
  return {};
}

nlohmann::json options_json(Tier tier) {
  const auto options = options_for(tier);
  return {{"docker", options.docker},
          {"podman", options.podman},
          {"kubernetes", options.kubernetes},
          {"host", options.host}};
}

std::string_view integrity_of(Tier tier, bool has_own_rootfs) {
  if (has_own_rootfs) return "yes: what it changes in the system's folders is its own";
  return contexts::is_isolated(tier) ? "no: the system's folders are shared with the platform"
                                     : "no: not isolated";
}

std::string way_to_isolation() {
  const auto options = options_for(Tier::namespaces);
  return "add SYS_ADMIN: " + std::string(options.docker) + ", Kubernetes " +
         std::string(options.kubernetes) +
         "; on a host start it as root or allow unprivileged user namespaces";
}

}  // namespace routerd
