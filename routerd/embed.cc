#include "routerd/embed.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "routerd/home_shares.h"
#include "routerd/launch.h"

namespace routerd {
namespace {

std::string environment_value(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

/// HOME, if it is a folder that can be replaced: not the root, and not everything.
std::string replaceable_home() {
  std::string home = environment_value("HOME");
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  struct stat info {};
  const bool is_folder = ::stat(home.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return home.size() > 1 && home.front() == '/' && is_folder ? home : "";
}

}  // namespace

contexts::ContextSpec children_context(const std::vector<Agent>& agents, const Profiles& profiles,
                                       const std::string& cwd) {
  contexts::ContextSpec user;
  user.name = "user";
  user.cwd = cwd;
  user.home = replaceable_home();
  adapt_to_agents(user, agents, profiles);
  if (!user.home.empty()) {
    user.share = default_shares(user.home, cwd, environment_value("PATH"), agents);
  }
  return user;
}

base::Result<void> embed(Daemon& daemon, const nlohmann::json& body) {
  const std::string cwd = body.value("cwd", "/");
  const std::string search_path = environment_value("PATH");
  const auto& profiles = daemon.options().profiles;
  std::vector<Agent> agents;
  const auto argv = body.value("agent", std::vector<std::string>{});
  auto program = inspect_program(argv.empty() ? "" : argv.front(), search_path, cwd);
  if (program) {
    agents.push_back(examine_agent(std::move(*program), argv, cwd, profiles, own_environment()));
    for (const auto& agent : agents) create_agent_folders(replaceable_home(), agent);
  }
  contexts::ContextSpec user = children_context(agents, profiles, cwd);
  user.name = body.value("routeTo", "user");
  for (const auto& entry : body.value("userEnv", std::vector<std::string>{})) {
    const auto equals = std::min(entry.find('='), entry.size() - 1);
    set_variable(user.env.pinned, entry.substr(0, equals), entry.substr(equals + 1));
  }
  user.env.secrets = daemon.options().secrets;
  for (auto& path : body.value("share", std::vector<std::string>{})) {
    user.share.push_back(std::move(path));
  }
  for (auto& path : body.value("hide", std::vector<std::string>{})) {
    user.hide.push_back(std::move(path));
  }
  contexts::ContextSpec platform;
  platform.name = body.value("in", "platform");
  platform.child_context = user.name;
  platform.route_child = contexts::RouteChild::always;
  platform.cwd = cwd;
  platform.enforce =
      contexts::parse_enforce(body.value("enforce", "auto")).value_or(contexts::Enforce{});
  platform.is_platform = true;
  for (auto* spec : {&user, &platform}) {
    if (auto created = daemon.create(std::move(*spec)); !created) {
      return tl::unexpected<base::Error>(created.error());
    }
  }
  return {};
}

}  // namespace routerd
