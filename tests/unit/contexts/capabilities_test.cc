#include "contexts/capabilities.h"

#include <linux/capability.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/file.h"

using namespace contexts;

namespace {

bool has(CapabilityMask mask, int capability) { return (mask >> capability & 1) != 0; }

}  // namespace

TEST_CASE("developers get what apt-get, su and a port below 1024 need", "[contexts]") {
  const auto mask = developer_capabilities();
  for (const int capability :
       {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID,
        CAP_SETFCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT}) {
    CAPTURE(capability);
    CHECK(has(mask, capability));
  }
}

TEST_CASE("developers get nothing that reaches beyond their context", "[contexts]") {
  const auto mask = developer_capabilities();
  for (const int capability : {CAP_SYS_ADMIN,
                               CAP_SYS_PTRACE,
                               CAP_NET_RAW,
                               CAP_NET_ADMIN,
                               CAP_SYS_MODULE,
                               CAP_SYS_RAWIO,
                               CAP_SYS_BOOT,
                               CAP_SYS_TIME,
                               CAP_SYS_RESOURCE,
                               CAP_SYS_NICE,
                               CAP_SYSLOG,
                               CAP_MKNOD,
                               CAP_BPF,
                               CAP_PERFMON,
                               CAP_MAC_ADMIN,
                               CAP_MAC_OVERRIDE,
                               CAP_AUDIT_CONTROL,
                               CAP_AUDIT_WRITE,
                               CAP_IPC_LOCK,
                               CAP_IPC_OWNER,
                               CAP_LINUX_IMMUTABLE,
                               CAP_DAC_READ_SEARCH,
                               CAP_SYS_PACCT,
                               CAP_SYS_TTY_CONFIG,
                               CAP_WAKE_ALARM,
                               CAP_BLOCK_SUSPEND,
                               CAP_CHECKPOINT_RESTORE,
                               CAP_SETPCAP}) {
    CAPTURE(capability);
    CHECK_FALSE(has(mask, capability));
  }
}

TEST_CASE("developer capabilities are among those the kernel knows", "[contexts]") {
  CHECK((developer_capabilities() & ~all_capabilities()) == 0);
  CHECK(has(all_capabilities(), CAP_SYS_ADMIN));
}

TEST_CASE("names come in ascending order, one per bit", "[contexts]") {
  CHECK(names_of(0).empty());
  CHECK(names_of(1) == std::vector<std::string>{"cap_chown"});
  CHECK(names_of(CapabilityMask{1} << CAP_SYS_ADMIN | 1) ==
        std::vector<std::string>{"cap_chown", "cap_sys_admin"});
  const auto mask = developer_capabilities();
  CHECK(names_of(mask).size() == static_cast<std::size_t>(__builtin_popcountll(mask)));
}

TEST_CASE("the effective set is what /proc says", "[contexts]") {
  const auto status = base::read_file("/proc/self/status").value();
  const auto at = status.find("CapEff:\t");
  REQUIRE(at != std::string::npos);
  CHECK(effective_capabilities() == std::stoull(status.substr(at + 8), nullptr, 16));
}
