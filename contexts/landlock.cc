#include "contexts/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

namespace contexts {

int landlock_abi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

base::Result<base::UniqueFd> exec_ruleset(const std::vector<std::string>& files) {
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_REFER;
  base::UniqueFd ruleset(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0)));
  if (!ruleset) return base::os_error("landlock_create_ruleset");
  for (const auto& path : files) {
    const auto file = base::open_file(path, O_PATH);
    if (!file) continue;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE;
    rule.parent_fd = file->borrow();
    if (::syscall(SYS_landlock_add_rule, ruleset.borrow(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) !=
        0) {
      return base::os_error("landlock_add_rule " + path);
    }
  }
  return ruleset;
}

}  // namespace contexts
