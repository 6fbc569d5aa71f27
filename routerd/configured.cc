#include "routerd/configured.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "routerd/home_shares.h"

namespace routerd {
namespace {

using contexts::ContextSpec;

ContextSpec to_spec(const std::string& name, const ContextConfig& config, const Config& whole) {
  ContextSpec spec;
  spec.name = name;
  spec.cwd = config.cwd;
  spec.child_context = config.child_context;
  spec.route_child = config.route_child;
  spec.isolation = config.isolation;
  spec.user = config.user;
  spec.share = config.share;
  spec.hide = config.hide;
  spec.env.pass_env = config.pass_env;
  spec.env.block_env = config.block_env;
  spec.env.secrets = whole.secrets;
  spec.env.base = whole.env_base;
  for (const auto& [key, value] : config.env) spec.env.pinned.push_back(key + "=" + value);
  spec.routes = config.routes;
  spec.allow_root_from = config.allow_root_from;
  spec.stdio_only = config.fds == PassedFds::stdio;
  spec.is_platform = name == "platform";
  return spec;
}

void add_home(ContextSpec& spec) {
  const char* home = ::getenv("HOME");
  struct stat info {};
  const bool is_replaceable = home != nullptr && home[0] == '/' && home[1] != '\0' &&
                              ::stat(home, &info) == 0 && S_ISDIR(info.st_mode);
  if (spec.is_platform || !is_replaceable) return;
  spec.home = home;
  const char* path = ::getenv("PATH");
  for (auto& share : default_shares(home, spec.cwd, path != nullptr ? path : "", nullptr)) {
    spec.share.push_back(std::move(share));
  }
}

}  // namespace

std::vector<ContextSpec> specs_of(const Config& config) {
  std::vector<ContextSpec> specs;
  for (const auto& [name, context] : config.contexts) {
    specs.push_back(to_spec(name, context, config));
  }
  return specs;
}

std::string missing_tier(const Config& config, contexts::Tier tier) {
  using contexts::Tier;
  const auto weakest = [&config] {
    switch (config.require_tier) {
      case RequiredTier::namespaces:
        return Tier::namespaces;
      case RequiredTier::isolated:
      case RequiredTier::userns:
        return Tier::userns;
      case RequiredTier::uids:
        return Tier::uids;
      case RequiredTier::landlock:
        return Tier::landlock;
      case RequiredTier::none:
        return Tier::none;
    }
    return Tier::namespaces;
  }();
  if (tier <= weakest) return {};
  return "require_tier asks for " + std::string(contexts::name_of(weakest)) +
         " or stronger, but only " + std::string(contexts::name_of(tier)) +
         " works here; 'airlock doctor' tells why, --development goes on all the same";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

base::Result<void> create_configured(Daemon& daemon, const Config& config) {
  for (auto& spec : specs_of(config)) {
    add_home(spec);
    auto created = daemon.create(std::move(spec));
    if (!created) return tl::unexpected<base::Error>(created.error());
    (*created)->is_claimable = true;
  }
  return {};
}

}  // namespace routerd
