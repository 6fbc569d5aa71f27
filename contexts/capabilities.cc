#include "contexts/capabilities.h"

#include <sys/capability.h>

#include <memory>

namespace contexts {
namespace {

struct CapFree {
  void operator()(void* object) const { cap_free(object); }
};
using Caps = std::unique_ptr<std::remove_pointer_t<cap_t>, CapFree>;

}  // namespace

CapabilityMask developer_capabilities() {
  CapabilityMask mask = 0;
  for (const char* name :
       {"cap_chown", "cap_dac_override", "cap_fowner", "cap_fsetid", "cap_kill", "cap_setgid",
        "cap_setuid", "cap_setfcap", "cap_net_bind_service", "cap_sys_chroot"}) {
    cap_value_t value = 0;
    if (cap_from_name(name, &value) == 0) mask |= CapabilityMask{1} << value;
  }
  return mask;
}

CapabilityMask all_capabilities() {
  const int count = cap_max_bits();
  return count >= 64 ? ~CapabilityMask{0} : (CapabilityMask{1} << count) - 1;
}

CapabilityMask effective_capabilities() {
  const Caps caps(cap_get_proc());
  CapabilityMask mask = 0;
  for (cap_value_t value = 0; value < cap_max_bits(); ++value) {
    cap_flag_value_t is_set = CAP_CLEAR;
    cap_get_flag(caps.get(), value, CAP_EFFECTIVE, &is_set);
    if (is_set == CAP_SET) mask |= CapabilityMask{1} << value;
  }
  return mask;
}

std::vector<std::string> names_of(CapabilityMask mask) {
  std::vector<std::string> names;
  for (cap_value_t value = 0; value < cap_max_bits(); ++value) {
    if ((mask >> value & 1) == 0) continue;
    const std::unique_ptr<char, CapFree> name(cap_to_name(value));
    names.emplace_back(name.get());
  }
  return names;
}

}  // namespace contexts
