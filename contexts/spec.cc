#include "contexts/spec.h"

#include <algorithm>
#include <cctype>

namespace contexts {

bool is_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 32 && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

bool is_valid_name(std::string_view name) { return is_name(name) && name != "control"; }

base::Result<void> validate(const ContextSpec& spec) {
  if (spec.is_control ? spec.name != "control" : !is_valid_name(spec.name)) {
    return base::failure("context name '" + spec.name.substr(0, 64) + "'", EINVAL,
                         std::string("expected ") + kNameRule + ", and not 'control'");
  }
  if (spec.child_context == spec.name) {
    return base::failure("context '" + spec.name + "'", EINVAL, "routes its children to itself");
  }
  if (!spec.child_context.empty() && !is_valid_name(spec.child_context)) {
    return base::failure("child_context '" + spec.child_context.substr(0, 64) + "'", EINVAL,
                         "not a context name");
  }
  if (!spec.cwd.starts_with('/')) {
    return base::failure("cwd '" + spec.cwd + "'", EINVAL, "expected an absolute path");
  }
  for (const auto* list : {&spec.share, &spec.hide, &spec.protect}) {
    for (const auto& path : *list) {
      if (path.starts_with('/')) continue;
      return base::failure("path '" + path + "'", EINVAL, "expected an absolute path");
    }
  }
  const struct {
    const char* name;
    std::uint64_t value, least;
  } least[] = {{"pids", spec.limits.pids, kLeastPids},
               {"memory", spec.limits.memory, kLeastMemory},
               {"open_files", spec.limits.open_files, kLeastOpenFiles},
               {"tmpfs", spec.limits.tmpfs, kLeastTmpfs}};
  for (const auto& limit : least) {
    if (limit.value == 0 || limit.value >= limit.least) continue;
    return base::failure(std::string("limit '") + limit.name + "'", EINVAL,
                         "expected at least " + std::to_string(limit.least));
  }
  for (const auto& entry : spec.env.pinned) {
    if (entry.find('=') != std::string::npos && entry.front() != '=' &&
        entry.find('\0') == std::string::npos) {
      continue;
    }
    return base::failure("environment entry '" + entry.substr(0, entry.find('=')) + "'", EINVAL,
                         "expected NAME=value without NUL");
  }
  return {};
}

}  // namespace contexts
