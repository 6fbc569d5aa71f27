// Any paths and any rules: a program runs in a context that its caller may reach, or here, or not
// at all; a path lies in a folder only if it begins with it. Each line of the input is one value;
// its first character says what: p(rogram), s(cript), k (a package of the agent), a (an argument),
// h(ere), r(oute), x (refuse): the pattern of a rule.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "routerd/routing.h"

namespace {

using contexts::RuleAction;

struct Input {
  contexts::ContextSpec from;
  routerd::RouteFacts facts;

  explicit Input(std::string_view text) {
    from.name = "platform";
    from.child_context = "user";
    facts.stub_id = {1, 1, 1};
    facts.agent.profile = "agent";
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      if (end > 0) add(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

 private:
  void add(std::string_view line) {
    const std::string value(line.substr(1));
    switch (line.front()) {
      case 'p':
        facts.program = facts.resolved_program = value;
        facts.program_id = {1, value.size() % 5, 1};
        return;
      case 's':
        facts.script = facts.resolved_script = value;
        facts.script_id = {1, value.size() % 5, 1};
        return;
      case 'k':
        facts.agent.packages.push_back(value);
        facts.agent.copies.push_back(value);
        facts.agent.launchers.push_back({1, value.size() % 5, 1});
        return;
      case 'a':
        return facts.argv.push_back(line.substr(1));
      case 'h':
        return from.routes.push_back({value, RuleAction::here, {}});
      case 'r':
        return from.routes.push_back({value, RuleAction::route, "other"});
      case 'x':
        return from.routes.push_back({value, RuleAction::refuse, {}});
      case 'v':
        facts.requested_context = value;
        return;
      default:
        return;
    }
  }
};

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Input input({reinterpret_cast<const char*>(data), size});
  const auto& facts = input.facts;
  const auto decision = decide(input.from, facts);
  if (decision.outcome == routerd::Outcome::run_in) {
    require(decision.context == "user" || decision.context == "other");
  }
  if (decision.outcome == routerd::Outcome::refuse) require(!decision.reason.empty());
  const bool is_stub = facts.program_id.is_known() && facts.program_id.is_same_file(facts.stub_id);
  if (is_stub) require(decision.outcome == routerd::Outcome::refuse);
  for (const auto& folder : facts.agent.packages) {
    if (routerd::is_below(facts.program, folder)) require(facts.program.starts_with(folder));
  }
  const auto word = script_word(facts.agent, facts.program_id, facts.argv);
  require(word.empty() ||
          std::find(facts.argv.begin(), facts.argv.end(), word) != facts.argv.end());
  return 0;
}
