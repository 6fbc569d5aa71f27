#include "contexts/environment.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace contexts {
namespace {

using std::string_view;

// "NAME=" of an entry, or the whole of one without '=': "FOO" and "FOO=" are two things.
string_view key_of(string_view entry) {
  const std::size_t equals = entry.find('=');
  return equals == string_view::npos ? entry : entry.substr(0, equals + 1);
}

bool is_basic_key(string_view key) {
  return key.ends_with('=') && is_basic_name(key.substr(0, key.size() - 1));
}

constexpr string_view kGitConfigCount = "GIT_CONFIG_COUNT=";

// git reads GIT_CONFIG_COUNT pairs GIT_CONFIG_KEY_n, GIT_CONFIG_VALUE_n and dies if one is missing,
// so they are changed and carried together.
bool is_git_config(string_view entry) {
  if (!entry.starts_with("GIT_CONFIG_")) return false;
  return entry.starts_with("GIT_CONFIG_KEY_") || entry.starts_with("GIT_CONFIG_VALUE_") ||
         entry.starts_with(kGitConfigCount);
}

// Entries by key: an open hash table of positions, since this is built for every routed exec.
class EnvIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  explicit EnvIndex(std::span<const std::string> env) : env_(env), next_(env.size(), kNone) {
    std::size_t size = 16;
    while (size < env.size() * 2) size *= 2;
    slots_.assign(size, {});
    for (std::uint32_t i = 0; i < env.size(); ++i) add(i);
  }

  /// Position of the first entry with that key, or kNone.
  std::uint32_t first(string_view key) const { return slots_[slot_of(key)].first; }
  /// Position of the next entry with the same key, or kNone.
  std::uint32_t next(std::uint32_t position) const { return next_[position]; }
  string_view entry(std::uint32_t position) const { return env_[position]; }
  bool contains(string_view key) const { return first(key) != kNone; }

 private:
  struct Slot {
    string_view key;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  std::size_t slot_of(string_view key) const {
    std::size_t at = std::hash<string_view>{}(key) & (slots_.size() - 1);
    while (slots_[at].first != kNone && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void add(std::uint32_t position) {
    const string_view key = key_of(env_[position]);
    Slot& slot = slots_[slot_of(key)];
    if (slot.first == kNone) {
      slot = {key, position, position};
    } else {
      next_[slot.last] = position;
      slot.last = position;
    }
  }

  std::span<const std::string> env_;
  std::vector<std::uint32_t> next_;
  std::vector<Slot> slots_;
};

class Merge {
 public:
  explicit Merge(const RoutedEnvInput& input)
      : input_(input),
        invoker_(input.invoker_env),
        start_(input.agent_start_env),
        child_(input.child_env),
        pinned_(input.pinned) {}

  RoutedEnvironment run() {
    result_.env.reserve(input_.child_env.size() + input_.pinned.size());
    is_git_config_changed_ = std::ranges::any_of(input_.child_env, [&](string_view entry) {
      return is_git_config(entry) && !is_same_as_at_start(key_of(entry));
    });
    add_childs_names();
    add_names_of_base_only();
    if (blocked_git_config_ != Verdict::pass) drop_git_config();
    result_.env.insert(result_.env.end(), input_.pinned.begin(), input_.pinned.end());
    return std::move(result_);
  }

 private:
  void add_childs_names() {
    std::vector<bool> taken(input_.child_env.size(), false);  // at a key's first entry: is carried
    for (std::uint32_t i = 0; i < input_.child_env.size(); ++i) {
      const string_view key = key_of(child_.entry(i));
      if (pinned_.contains(key)) continue;
      const std::uint32_t first = child_.first(key);
      if (i == first) {
        taken[i] = is_changed(key) && passes(child_, first);
        if (!taken[i]) add_base(key);
      }
      if (taken[first]) result_.env.emplace_back(child_.entry(i));
    }
  }

  void add_names_of_base_only() {
    for (std::uint32_t i = 0; i < input_.invoker_env.size(); ++i) {
      const string_view key = key_of(invoker_.entry(i));
      if (invoker_.first(key) != i || child_.contains(key)) continue;
      const bool is_removed = start_.contains(key);
      if (!is_removed && !pinned_.contains(key)) add_base(key);
    }
  }

  void add_base(string_view key) {
    const std::uint32_t first = invoker_.first(key);
    if (first == EnvIndex::kNone) return;
    if (input_.base == EnvPolicy::Base::clean && !is_basic_key(key)) return;
    if (!passes(invoker_, first)) return;
    for (std::uint32_t i = first; i != EnvIndex::kNone; i = invoker_.next(i)) {
      result_.env.emplace_back(invoker_.entry(i));
    }
  }

  bool is_changed(string_view key) const {
    return !is_same_as_at_start(key) || (is_git_config_changed_ && is_git_config(key));
  }

  bool is_same_as_at_start(string_view key) const {
    std::uint32_t in_start = start_.first(key);
    std::uint32_t in_child = child_.first(key);
    while (in_start != EnvIndex::kNone && in_child != EnvIndex::kNone) {
      if (start_.entry(in_start) != child_.entry(in_child)) return false;
      in_start = start_.next(in_start);
      in_child = child_.next(in_child);
    }
    return in_start == in_child;  // both at the end
  }

  // Judges all entries of a name, from its first one on, and notes a block.
  bool passes(const EnvIndex& env, std::uint32_t first) {
    for (std::uint32_t i = first; i != EnvIndex::kNone; i = env.next(i)) {
      const Verdict verdict = input_.filter.verdict(env.entry(i));
      if (verdict == Verdict::pass) continue;
      note_blocked({input_.filter.loggable_name(env.entry(i)), verdict});
      if (is_git_config(env.entry(i))) blocked_git_config_ = verdict;
      return false;
    }
    return true;
  }

  void note_blocked(BlockedName blocked) {
    // A name is judged at most twice, for the child and right after it for the base.
    if (!result_.blocked.empty() && result_.blocked.back().name == blocked.name) return;
    result_.blocked.push_back(std::move(blocked));
  }

  // Without the count git ignores the pairs.
  void drop_git_config() {
    const auto is_count = [](string_view entry) { return key_of(entry) == kGitConfigCount; };
    if (std::erase_if(result_.env, is_count) > 0) {
      note_blocked({"GIT_CONFIG_COUNT", blocked_git_config_});
    }
  }

  const RoutedEnvInput& input_;
  EnvIndex invoker_;
  EnvIndex start_;
  EnvIndex child_;
  EnvIndex pinned_;
  RoutedEnvironment result_;
  bool is_git_config_changed_ = false;
  Verdict blocked_git_config_ = Verdict::pass;
};

}  // namespace

RoutedEnvironment routed_environment(const RoutedEnvInput& input) { return Merge(input).run(); }

}  // namespace contexts
