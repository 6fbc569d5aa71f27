#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace routerd::ports {

enum class Protocol { tcp, udp };

/// From where a held port can be reached. as_bound: loopback until the service binds; then what its
/// bind(2) asked for.
enum class Expose { as_bound, loopback, all };

struct PortKey {
  Protocol protocol = Protocol::tcp;
  std::uint16_t number = 0;
  auto operator<=>(const PortKey&) const = default;
};

struct PortSpec {
  PortKey key;
  Expose expose = Expose::as_bound;
  /// In LISTEN_FDNAMES; empty = the number.
  std::string name;
  bool operator==(const PortSpec&) const = default;
};

inline const char* name_of(Protocol protocol) { return protocol == Protocol::tcp ? "tcp" : "udp"; }

inline const char* name_of(Expose expose) {
  if (expose == Expose::all) return "all";
  return expose == Expose::loopback ? "loopback" : "as bound";
}

/// "tcp port 8080".
inline std::string to_string(const PortKey& key) {
  return std::string(name_of(key.protocol)) + " port " + std::to_string(key.number);
}

}  // namespace routerd::ports
