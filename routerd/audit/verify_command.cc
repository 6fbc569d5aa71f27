#include "routerd/audit/verify_command.h"

#include <iostream>

#include "routerd/audit/audit_log.h"

namespace routerd::audit {

using json = nlohmann::json;

namespace {

json to_json(const ChainCheck& check) {
  json problems = json::array();
  for (const auto& problem : check.problems()) {
    problems.push_back({{"file", problem.file}, {"line", problem.line}, {"what", problem.what}});
  }
  return {{"intact", check.problems().empty()},
          {"records", check.lines()},
          {"first", check.first().number},
          {"head", to_text(check.last())},
          {"problems", std::move(problems)}};
}

}  // namespace

int verify_command(const std::string& folder, const std::string& known, bool as_json) {
  const auto head = known.empty() ? Head{} : parse_head(known);
  if (!head) {
    std::cerr << "airlock: '" << known << "': expected NUMBER:HASH, as 'airlock audit head' says\n";
    return 2;
  }
  const auto check = verify(folder, *head);
  if (!check) {
    std::cerr << "airlock: " << check.error().message() << "\n";
    return 1;
  }
  const bool is_intact = check->problems().empty();
  if (as_json) {
    std::cout << to_json(*check).dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return is_intact ? 0 : 1;
  }
  for (const auto& problem : check->problems()) {
    std::cout << problem.file << ":" << problem.line << ": " << problem.what << "\n";
  }
  std::cout << folder << ": " << (is_intact ? "intact" : "NOT intact") << ", " << check->lines()
            << " records, " << check->first().number << " to " << to_text(check->last()) << "\n";
  return is_intact ? 0 : 1;
}

}  // namespace routerd::audit
