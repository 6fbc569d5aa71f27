#include "preload/bind/names.h"

#include <string.h>

namespace preload::bind {

bool names_port(const char* list, Protocol protocol, uint16_t port) {
  const char* prefix = protocol == Protocol::tcp ? "tcp:" : "udp:";
  for (const char* at = list; at != nullptr;) {
    if (strncmp(at, prefix, 4) == 0) {
      uint32_t number = 0;
      const char* digit = at + 4;
      for (; *digit >= '0' && *digit <= '9' && number <= UINT16_MAX; ++digit) {
        number = number * 10 + static_cast<uint32_t>(*digit - '0');
      }
      const bool is_whole = digit != at + 4 && (*digit == ',' || *digit == '\0');
      if (is_whole && number == port) return true;
    }
    at = strchr(at, ',');
    if (at != nullptr) ++at;
  }
  return false;
}

const char* value_of(char** environment, const char* name) {
  const size_t length = strlen(name);
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

}  // namespace preload::bind
