#include "routerd/home_shares.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace routerd {
namespace {

/// Tool installations and caches; no folder here is a place for credentials.
constexpr const char* kShared[] = {".gitconfig",  ".config/git/ignore",
                                   ".cache/pip",  ".cache/go-build",
                                   ".cache/yarn", ".npm/_cacache",
                                   ".cargo/bin",  ".cargo/registry",
                                   ".rustup",     ".pyenv",
                                   ".nvm",        ".volta",
                                   ".rbenv",      ".asdf",
                                   ".sdkman",     ".deno/bin",
                                   ".bun/bin",    ".local/bin",
                                   ".local/lib",  "go/bin",
                                   "go/pkg"};

class Shares {
 public:
  explicit Shares(const std::string& home) : home_(home) {}

  void add(const std::string& path) {
    struct stat info {};
    const bool is_below = path.starts_with(home_ + "/") && path.size() > home_.size() + 1;
    if (is_below && ::stat(path.c_str(), &info) == 0) paths_.push_back(path);
  }

  /// A folder inside a shared one needs no mount of its own.
  std::vector<std::string> take() {
    std::sort(paths_.begin(), paths_.end());
    std::vector<std::string> outermost;
    for (auto& path : paths_) {
      const bool is_inside = std::any_of(
          outermost.begin(), outermost.end(),
          [&path](const std::string& outer) { return (path + "/").starts_with(outer + "/"); });
      if (!is_inside) outermost.push_back(std::move(path));
    }
    return outermost;
  }

 private:
  const std::string& home_;
  std::vector<std::string> paths_;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// An npm program needs the packages around it.
std::string install_folder(const std::string& path) {
  const auto modules = path.find("/node_modules/");
  return modules == std::string::npos ? folder_of(path) : path.substr(0, modules) + "/node_modules";
}

}  // namespace

std::vector<std::string> default_shares(const std::string& home, const std::string& cwd,
                                        const std::string& search_path,
                                        const std::vector<Agent>& agents) {
  Shares shares(home);
  for (const char* relative : kShared) shares.add(home + "/" + relative);
  shares.add(cwd);
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) shares.add(folder);
  for (const auto& agent : agents) {
    const auto& program = agent.program;
    for (const auto& path : {program.path, program.script, program.executable}) {
      shares.add(install_folder(path));
    }
    for (const auto& package : agent.packages) shares.add(install_folder(package + "/"));
    for (const auto& folder : agent.share) shares.add(folder);
  }
  return shares.take();
}

void create_agent_folders(const std::string& home, const Agent& agent) {
  struct stat owner {};
  if (::stat(home.c_str(), &owner) != 0) return;
  for (const auto& share : agent.share) {
    if (!is_below(share, home)) continue;
    for (std::size_t end = home.size(); end != std::string::npos;) {
      end = share.find('/', end + 1);
      const std::string folder = share.substr(0, end);
      if (::mkdir(folder.c_str(), 0700) == 0) {
        (void)::chown(folder.c_str(), owner.st_uid, owner.st_gid);
      }
    }
  }
}

void adapt_to_agents(contexts::ContextSpec& spec, const std::vector<Agent>& agents,
                     const Profiles& profiles) {
  const auto add = [](std::vector<std::string>& list, const std::string& path) {
    if (std::find(list.begin(), list.end(), path) == list.end()) list.push_back(path);
  };
  for (const auto& agent : agents) {
    for (const auto& package : agent.packages) {
      if (!is_below(package, spec.cwd)) add(spec.protect, package);
    }
    for (const auto& folder : agent.hide) {
      // Only folders can be hidden, and a profile may name one that is none here.
      struct stat info {};
      if (::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) add(spec.hide, folder);
    }
  }
  for (const auto& folder : profiles.folders()) add(spec.protect, folder);
}

}  // namespace routerd
