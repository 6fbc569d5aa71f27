#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "contexts/environment.h"
#include "contexts/mechanism.h"
#include "routerd/routing.h"
#include "wire/message.h"

namespace routerd {

/// One agent that was started, and what its children's environments are made from.
struct Launch {
  std::uint64_t id = 0;
  contexts::Environment start_env;
  AgentIdentity agent;
  /// Of the agent's profile, for the filter of its children's env.
  std::vector<std::string> pass_env;
  std::vector<std::string> block_env;
  /// Base of the children's env: `airlock run` inherits, a daemon is clean.
  contexts::EnvPolicy::Base base = contexts::EnvPolicy::Base::clean;
  /// What enforces the routing of its children.
  contexts::Mechanism mechanism = contexts::Mechanism::preload;
  /// Loads the interposer by LD_PRELOAD: not where the agent's own /etc/ld.so.preload does, nor
  /// into a program of musl, which it would end.
  bool has_preload_variable = true;
  /// Under a farm: files of covered folders that the agent finds as they are.
  std::vector<std::string> kept;
};

/// The launches of one context. Agents find theirs by the variable kLaunchVariable, which their
/// children inherit; without it (`env -i`) the latest one counts.
class Launches {
 public:
  static constexpr std::size_t kKept = 256;
  static constexpr std::string_view kLaunchVariable = "AIRLOCK_LAUNCH";

  Launch& add(Launch launch);
  std::size_t size() const { return launches_.size(); }
  /// The launch `id`, or nullptr.
  Launch* find(std::uint64_t id);
  /// The launch that `env` names, or nullptr.
  const Launch* named_in(const std::vector<std::string_view>& env) const;
  /// The launch the process with `env` belongs to; never null: an unknown one has no start env.
  const Launch& find(const std::vector<std::string_view>& env) const;

 private:
  std::map<std::uint64_t, Launch> launches_;
  std::uint64_t next_id_ = 1;
};

/// The environment of this process.
contexts::Environment own_environment();

/// Adds a library to an LD_PRELOAD value, first.
void add_preload(contexts::Environment& env, const std::string& library);

/// Sets NAME=value, replacing every earlier entry of that name.
void set_variable(contexts::Environment& env, std::string_view name, std::string_view value);

/// The value of the first entry of `name`; empty if there is none.
std::string variable(const contexts::Environment& env, std::string_view name);

}  // namespace routerd
