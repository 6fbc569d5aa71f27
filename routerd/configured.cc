#include "routerd/configured.h"

#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <memory>

#include "routerd/home_shares.h"
#include "routerd/launch.h"

namespace routerd {
namespace {

using contexts::ContextSpec;

ContextSpec to_spec(const std::string& name, const ContextConfig& config, const Config& whole) {
  ContextSpec spec;
  spec.name = name;
  spec.cwd = config.cwd;
  spec.child_context = config.child_context;
  spec.route_child = config.route_child;
  spec.enforce = config.enforce;
  spec.isolation = config.isolation;
  spec.rootfs = config.rootfs;
  spec.user = config.user;
  spec.share = config.share;
  spec.hide = config.hide;
  spec.env.pass_env = config.pass_env;
  spec.env.block_env = config.block_env;
  spec.env.secrets = whole.secrets;
  spec.env.base = whole.env_base;
  for (const auto& [key, value] : config.env) spec.env.pinned.push_back(key + "=" + value);
  spec.routes = config.routes;
  spec.limits = config.limits;
  spec.allow_root_from = config.allow_root_from;
  spec.terminals = config.tty;
  spec.persistent = config.persistent;
  spec.api_socket = config.api_socket;
  spec.stdio_only = config.fds == PassedFds::stdio;
  spec.is_platform = name == "platform";
  return spec;
}

void add_home(ContextSpec& spec, const std::vector<Agent>& agents) {
  const char* home = ::getenv("HOME");
  struct stat info {};
  const bool is_replaceable = home != nullptr && home[0] == '/' && home[1] != '\0' &&
                              ::stat(home, &info) == 0 && S_ISDIR(info.st_mode);
  if (spec.is_platform || !is_replaceable) return;
  spec.home = home;
  const char* path = ::getenv("PATH");
  for (const auto& agent : agents) create_agent_folders(home, agent);
  for (auto& share : default_shares(home, spec.cwd, path != nullptr ? path : "", agents)) {
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

contexts::Tier weakest_of(RequiredTier required) {
  using contexts::Tier;
  switch (required) {
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

namespace {

std::uint32_t random_mark() {
  std::uint32_t mark = 0;
  while (mark == 0 && ::getrandom(&mark, sizeof mark, 0) < 0) {
  }
  return mark | 1;  // 0 is everybody's
}

/// Services and their ports follow the file; the rest is read when a daemon starts.
std::vector<std::string> reload_services(Daemon& daemon, Config& current, const std::string& file) {
  auto loaded = load_config(file);
  std::vector<std::string> problems;
  if (!loaded) {
    for (const auto& error : loaded.error()) problems.push_back(error.render());
  } else {
    if (loaded->contexts != current.contexts) {
      problems.emplace_back("contexts have changed: that needs a restart, or 'airlock ctx'");
    }
    if (loaded->control_reachable != current.control_reachable) {
      problems.emplace_back("control.reachable has changed: that needs a restart");
    }
    if (loaded->api != current.api) {
      problems.emplace_back("api has changed: that needs a restart");
    }
    if (auto* settings = daemon.api_settings()) settings->reload();
    for (auto& problem : daemon.services()->reload(loaded->services)) {
      problems.push_back(std::move(problem));
    }
  }
  for (const auto& problem : problems) spdlog::error("reload: {}", problem);
  return problems;
}

}  // namespace

base::Result<void> hold_ports(Daemon& daemon, const Config& config) {
  services::Supervisor::Settings settings;
  settings.reach = {config.control_reachable, random_mark()};
  settings.log_folder = config.log_dir.empty() ? daemon.runtime().root() + "/log" : config.log_dir;
  daemon.set_services(std::make_unique<services::Supervisor>(daemon, std::move(settings)));
  return daemon.services()->reserve(config.services);
}

base::Result<void> start_services(Daemon& daemon, const Config& config, const std::string& file) {
  if (!file.empty()) {
    daemon.on_reload([&daemon, file, current = std::make_shared<Config>(config)] {
      return reload_services(daemon, *current, file);
    });
  }
  if (config.api.is_wanted) {
    daemon.set_api_settings(std::make_unique<ApiSettings>(daemon.io(), config.api));
  }
  return daemon.services()->start(config.services);
}

base::Result<void> create_configured(Daemon& daemon, const Config& config) {
  const auto& profiles = daemon.options().profiles;
  const auto agents = installed_agents(profiles, own_environment());
  for (auto& spec : specs_of(config)) {
    if (!spec.is_platform) adapt_to_agents(spec, agents, profiles);
    add_home(spec, agents);
    auto created = daemon.create(std::move(spec));
    if (!created) return tl::unexpected<base::Error>(created.error());
    (*created)->is_claimable = true;
    (*created)->lifetime->set(config.contexts.at((*created)->spec().name).lifespan);
  }
  return {};
}

}  // namespace routerd
