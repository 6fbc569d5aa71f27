#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

namespace support {

/// True, and a warning in the report, when this process is not root: the test ends then.
inline bool lacks_root() {
  if (::geteuid() == 0) return false;
  WARN("not run: needs root");
  return true;
}

}  // namespace support
