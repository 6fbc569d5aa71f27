#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "routerd/ports/spec.h"

namespace routerd {

/// The HTTP API, as configured.
struct ApiConfig {
  /// Name of the service that serves it.
  static constexpr const char* kService = "airlock-api";

  bool is_wanted = false;
  std::uint16_t port = 8080;
  ports::Expose expose = ports::Expose::loopback;
  /// Who may do what (docs/API.md); empty: nobody. Absolute.
  std::string tokens_file;
  /// Names, beside those of this machine, that a request's Host may have.
  std::vector<std::string> hosts;
  /// Web pages that may use the API, as "https://app.example": CORS and WebSockets.
  std::vector<std::string> origins;
  /// Of one token, in the long run.
  std::uint32_t requests_per_second = 2000;
  bool operator==(const ApiConfig&) const = default;
};

}  // namespace routerd
