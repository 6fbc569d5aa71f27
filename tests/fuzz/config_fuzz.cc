// Any bytes as a configuration file: a Config, or errors that can be shown.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "routerd/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = routerd::parse_config(text, "fuzz.yaml");
  if (config) return 0;
  if (config.error().empty()) std::abort();
  for (const auto& error : config.error()) {
    if (error.render().find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
