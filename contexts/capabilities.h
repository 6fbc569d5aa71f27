#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace contexts {

/// A set of capabilities: bit N is capability N of capabilities(7).
using CapabilityMask = std::uint64_t;

/// What developer work needs (apt-get, chown, su, postgres, port 80) and nothing that reaches
/// beyond a context. CAP_SETFCAP is safe only while /proc/sys is read-only there.
CapabilityMask developer_capabilities();

/// Every capability this kernel knows.
CapabilityMask all_capabilities();

/// This process's effective set.
CapabilityMask effective_capabilities();

/// "cap_chown", … in ascending order.
std::vector<std::string> names_of(CapabilityMask mask);

}  // namespace contexts
