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
                                        const std::string& search_path, const Program* agent) {
  Shares shares(home);
  for (const char* relative : kShared) shares.add(home + "/" + relative);
  shares.add(cwd);
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) shares.add(folder);
  if (agent == nullptr) return shares.take();
  for (const auto& path : {agent->path, agent->script, agent->executable}) {
    shares.add(install_folder(path));
  }
  if (const KnownAgent* known = find_agent(agent->identity())) {
    for (const auto folder : known->shared_home) shares.add(home + "/" + std::string(folder));
  }
  return shares.take();
}

void create_agent_folders(const std::string& home, const Program& agent) {
  const KnownAgent* known = find_agent(agent.identity());
  struct stat owner {};
  if (known == nullptr || ::stat(home.c_str(), &owner) != 0) return;
  for (const auto relative : known->shared_home) {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = relative.find('/', end + 1);
      const std::string folder = home + "/" + std::string(relative.substr(0, end));
      if (::mkdir(folder.c_str(), 0700) == 0) {
        (void)::chown(folder.c_str(), owner.st_uid, owner.st_gid);
      }
    }
  }
}

}  // namespace routerd
