#pragma once

#include <cstdint>
#include <string>

namespace routerd::audit {

struct Options {
  /// Where the log is kept: audit.jsonl, audit.jsonl.1 (older), … Empty: there is none. Shown to no
  /// context.
  std::string folder;
  /// Records arguments of programs, too, except those that contain a secret.
  bool with_argv = false;
  /// Bytes of one file; and how many older ones are kept.
  std::uint64_t max_bytes = 50 << 20;
  unsigned keep = 5;
  bool operator==(const Options&) const = default;
};

}  // namespace routerd::audit
