#include "routerd/embed.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "routerd/home_shares.h"

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

base::Result<void> embed(Daemon& daemon, const nlohmann::json& body) {
  const std::string cwd = body.value("cwd", "/");
  const std::string search_path = environment_value("PATH");
  contexts::ContextSpec user;
  user.name = body.value("routeTo", "user");
  user.cwd = cwd;
  user.home = replaceable_home();
  for (const auto& entry : body.value("userEnv", std::vector<std::string>{})) {
    const auto equals = std::min(entry.find('='), entry.size() - 1);
    set_variable(user.env.pinned, entry.substr(0, equals), entry.substr(equals + 1));
  }
  user.env.secrets = daemon.options().secrets;
  user.hide = body.value("hide", std::vector<std::string>{});
  if (!user.home.empty()) {
    auto agent = inspect_program(body.value("agent", ""), search_path, cwd);
    if (agent) create_agent_folders(user.home, *agent);
    user.share = default_shares(user.home, cwd, search_path, agent ? &*agent : nullptr);
  }
  for (auto& path : body.value("share", std::vector<std::string>{})) {
    user.share.push_back(std::move(path));
  }
  contexts::ContextSpec platform;
  platform.name = body.value("in", "platform");
  platform.child_context = user.name;
  platform.route_child = contexts::RouteChild::always;
  platform.cwd = cwd;
  platform.is_platform = true;
  for (auto* spec : {&user, &platform}) {
    if (auto created = daemon.create(std::move(*spec)); !created) {
      return tl::unexpected<base::Error>(created.error());
    }
  }
  return {};
}

}  // namespace routerd
