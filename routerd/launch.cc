#include "routerd/launch.h"

#include <algorithm>
#include <charconv>

extern char** environ;

namespace routerd {
namespace {

bool is_named(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

Launch& Launches::add(Launch launch) {
  launch.id = next_id_++;
  if (launches_.size() >= kKept) launches_.erase(launches_.begin());
  return launches_.emplace(launch.id, std::move(launch)).first->second;
}

Launch* Launches::find(std::uint64_t id) {
  const auto found = launches_.find(id);
  return found == launches_.end() ? nullptr : &found->second;
}

const Launch* Launches::named_in(const std::vector<std::string_view>& env) const {
  for (const auto entry : env) {
    if (!is_named(entry, kLaunchVariable)) continue;
    const auto text = entry.substr(kLaunchVariable.size() + 1);
    std::uint64_t id = 0;
    std::from_chars(text.data(), text.data() + text.size(), id);
    if (const auto found = launches_.find(id); found != launches_.end()) return &found->second;
  }
  return nullptr;
}

const Launch& Launches::find(const std::vector<std::string_view>& env) const {
  static const Launch unknown;
  if (const Launch* named = named_in(env)) return *named;
  return launches_.empty() ? unknown : launches_.rbegin()->second;
}

contexts::Environment own_environment() {
  contexts::Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  return env;
}

void set_variable(contexts::Environment& env, std::string_view name, std::string_view value) {
  std::erase_if(env, [name](const std::string& entry) { return is_named(entry, name); });
  env.push_back(std::string(name) + "=" + std::string(value));
}

std::string variable(const contexts::Environment& env, std::string_view name) {
  for (const auto& entry : env) {
    if (is_named(entry, name)) return entry.substr(name.size() + 1);
  }
  return {};
}

void add_preload(contexts::Environment& env, const std::string& library) {
  const std::string others = variable(env, "LD_PRELOAD");
  if ((others + ":").starts_with(library + ":")) return;
  set_variable(env, "LD_PRELOAD", others.empty() ? library : library + ":" + others);
}

}  // namespace routerd
