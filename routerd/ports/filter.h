#pragma once

#include <linux/filter.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "routerd/ports/spec.h"

namespace routerd::ports {

/// Whether this machine's own programs may connect to held ports.
struct Reach {
  bool from_here = true;
  /// SO_MARK of connections that may all the same (readiness probes); needs CAP_NET_ADMIN to set.
  std::uint32_t mark = 0;
};

/// Which destination addresses a port answers at. An address is 4 or 16 bytes as in a packet. Any
/// loopback address stands for all of them.
class Exposure {
 public:
  static Exposure everywhere();
  static Exposure loopback();

  /// What a bind(2) to `address` asks for, in addition. The wildcards are everywhere; IPv4
  /// addresses may come in their IPv6 form. EINVAL: neither 4 nor 16 bytes.
  bool add(std::string_view address);
  bool is_everywhere() const { return is_everywhere_; }

 private:
  friend std::vector<sock_filter> filter_for(const Exposure&, const Reach&);
  bool is_everywhere_ = false;
  bool has_loopback_ = false;
  std::vector<std::string> addresses_;
};

/// A program for SO_ATTACH_FILTER (socket(7)); empty if nothing is to be dropped. It looks at the
/// network header, so it serves TCP and UDP. What it does not take is dropped: the client hears
/// nothing. Connections accepted from a filtered listener inherit it. Pure.
std::vector<sock_filter> filter_for(const Exposure& exposure, const Reach& reach);

}  // namespace routerd::ports
