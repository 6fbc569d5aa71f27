// Any environments and any policy: what is routed holds nothing that the filter blocks, no secret,
// and the pinned variables last. Each line of the input is an entry; its first character says where
// it belongs: i(nvoker), s(tart), c(hild), p(inned), +(pass_env), -(block_env), !(a secret).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "contexts/environment.h"

namespace {

using contexts::Environment;

struct Input {
  Environment invoker, start, child;
  contexts::EnvPolicy policy;

  explicit Input(std::string_view text) {
    if (text.starts_with('I')) policy.base = contexts::EnvPolicy::Base::inherit;
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      add(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

 private:
  void add(std::string_view line) {
    if (line.empty() || line.find('\0') != std::string_view::npos) return;
    std::string entry(line.substr(1));
    switch (line.front()) {
      case 'i':
        return invoker.push_back(std::move(entry));
      case 's':
        return start.push_back(std::move(entry));
      case 'c':
        return child.push_back(std::move(entry));
      case 'p':
        return policy.pinned.push_back(std::move(entry));
      case '+':
        return policy.pass_env.push_back(std::move(entry));
      case '-':
        return policy.block_env.push_back(std::move(entry));
      case '!':
        return policy.secrets.push_back(std::move(entry));
      default:
        return;
    }
  }
};

bool holds_secret(const contexts::EnvPolicy& policy, std::string_view text) {
  return std::any_of(policy.secrets.begin(), policy.secrets.end(), [text](const auto& secret) {
    return secret.size() >= contexts::kMinSecretSize && text.find(secret) != std::string_view::npos;
  });
}

void require(bool fact) {
  if (!fact) std::abort();
}

void check_entry(const Input& input, const contexts::EnvFilter& filter, const std::string& entry) {
  require(filter.verdict(entry) == contexts::Verdict::pass);
  const auto is_known = [&entry](const Environment& env) {
    return std::find(env.begin(), env.end(), entry) != env.end();
  };
  require(is_known(input.child) || is_known(input.invoker));
  if (!input.policy.pass_env.empty()) return;  // which lets secrets through
  const std::string name = entry.substr(0, entry.find('='));
  require(!holds_secret(input.policy, entry));
  require(!contexts::is_secret_like_name(name));
  require(!name.starts_with("LD_") && !name.starts_with("AIRLOCK_"));
  if (name.size() < entry.size())
    require(!contexts::has_url_password(entry.substr(name.size() + 1)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Input input({reinterpret_cast<const char*>(data), size});
  const contexts::EnvFilter filter(input.policy, input.start);
  const auto routed = contexts::routed_environment({.invoker_env = input.invoker,
                                                    .agent_start_env = input.start,
                                                    .child_env = input.child,
                                                    .filter = filter,
                                                    .pinned = input.policy.pinned,
                                                    .base = input.policy.base});
  const auto& pinned = input.policy.pinned;
  require(routed.env.size() >= pinned.size());
  const auto end_of_own = routed.env.end() - static_cast<std::ptrdiff_t>(pinned.size());
  require(std::equal(end_of_own, routed.env.end(), pinned.begin()));
  for (auto entry = routed.env.begin(); entry != end_of_own; ++entry) {
    check_entry(input, filter, *entry);
  }
  for (const auto& blocked : routed.blocked) require(!holds_secret(input.policy, blocked.name));
  return 0;
}
