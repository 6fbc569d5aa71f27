#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace contexts::init {

/// One line of /proc/PID/mountinfo (proc(5)).
struct MountEntry {
  std::string id;
  std::string parent;
  /// "MAJOR:MINOR"
  std::string device;
  std::string point;
  /// Of the file system, "ext4".
  std::string type;
};

/// In the order of the text: a mount comes after the one it lies on.
std::vector<MountEntry> parse_mounts(std::string_view mountinfo);

/// Those that this process sees.
base::Result<std::vector<MountEntry>> own_mounts();

}  // namespace contexts::init
