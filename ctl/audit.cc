#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "ctl/ask.h"
#include "ctl/commands.h"
#include "ctl/daemon_process.h"
#include "ctl/print.h"

namespace ctl {

int audit_head(const Common& common) {
  auto answer = ask(common, "audit");
  if (!answer) return 1;
  if (common.json) return print_json(*answer), 0;
  std::cout << answer->value("head", "") << "\n";
  const auto dropped = answer->value("dropped", std::uint64_t{0});
  if (dropped == 0) return 0;
  return complain(
      std::to_string(dropped) + " records could not be written: " + answer->value("lastError", ""),
      1);
}

int audit_verify(const Common& common, const std::string& folder, std::string head) {
  std::string where = folder;
  if (where.empty()) {
    auto answer = ask(common, "audit");
    if (!answer) return 1;
    where = answer->value("folder", "");
    if (head.empty()) head = answer->value("head", "");
  }
  const std::string program = daemon_program();
  const std::string with_folder = "--verify-audit=" + where;
  const std::string with_head =
      "--audit-head=" + (head.empty() ? "0:" + std::string(64, '0') : head);
  const char* format = common.json ? "--json" : nullptr;
  ::execl(program.c_str(), program.c_str(), with_folder.c_str(), with_head.c_str(), format,
          nullptr);
  return complain(program + ": " + std::strerror(errno), 1);
}

}  // namespace ctl
