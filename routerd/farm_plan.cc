#include "routerd/farm_plan.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/file.h"

namespace routerd {
namespace {

constexpr const char* kSystemFolders[] = {"/usr/bin",
                                          "/usr/sbin",
                                          "/bin",
                                          "/sbin",
                                          "/usr/games",
                                          "/usr/local/bin",
                                          "/usr/local/sbin",
                                          "/usr/local/games",
                                          "/usr/libexec",
                                          "/usr/lib/git-core"};

/// Entries that a rule's pattern may be compared with.
constexpr std::size_t kMaxWalked = 20'000;

std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return {};
  std::string result(real);
  ::free(real);
  return result;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_below(const std::string& path, const std::string& folder) {
  return folder.size() > 1 && (path + "/").starts_with(folder + "/");
}

void add_once(std::vector<std::string>& list, std::string item) {
  if (item.empty() || std::find(list.begin(), list.end(), item) != list.end()) return;
  list.push_back(std::move(item));
}

class Planner {
 public:
  Planner(const Agent& agent, const FarmSite& site)
      : agent_(agent), program_(agent.program), site_(site) {}

  FarmPlan make() {
    plan_.covered = system_bin_folders();
    cover_interpreter();
    cover_search_path();
    for (const auto& file : program_.files) allow(file);
    allow_by_profile();
    allow_by_rules();
    return std::move(plan_);
  }

 private:
  bool is_self_contained() const { return program_.script.empty() && agent_.profile != nullptr; }

  void cover_interpreter() {
    const auto folder = folder_of(program_.executable);
    const auto kind = name_of(folder);
    // A static program is no interpreter, but may copy itself: it must find itself as it is.
    const bool is_interpreter = !is_self_contained() && !program_.is_static;
    if (!is_interpreter || (kind != "bin" && kind != "sbin")) return;
    if (!is_below(folder, resolved(site_.cwd))) add_once(plan_.covered, folder);
  }

  void cover_search_path() {
    const std::string cwd = resolved(site_.cwd);
    const std::string home = resolved(site_.home);
    std::istringstream folders(site_.search_path);
    for (std::string each; std::getline(folders, each, ':');) {
      if (!each.starts_with('/') || !is_folder(each)) continue;
      const auto folder = resolved(each);
      if (folder.size() < 2 || is_below(folder, cwd)) continue;
      if (is_below(folder, home) && !agent_.has_static_part()) continue;
      add_once(plan_.covered, folder);
    }
  }

  bool is_covered(const std::string& path) const {
    const auto folder = resolved(folder_of(path));
    return std::find(plan_.covered.begin(), plan_.covered.end(), folder) != plan_.covered.end();
  }

  /// `path` may be executed. A script has to be readable, too: its interpreter opens it by name.
  void allow(const std::string& path) {
    add_once(plan_.executable, path);
    const auto real = resolved(path);
    const bool is_script = !real.empty() && is_script_file(real);
    if (!is_script && !(is_self_contained() && real == program_.executable)) return;
    keep(path);
  }

  static bool is_script_file(const std::string& path) {
    auto file = base::open_file(path, O_RDONLY);
    char head[2] = {};
    return file && ::pread(file->borrow(), head, sizeof head, 0) == sizeof head && head[0] == '#' &&
           head[1] == '!';
  }

  /// Follows the links in covered folders that lead to the file.
  void keep(std::string path) {
    for (int links = 0; links < 40 && is_covered(path); ++links) {
      const auto folder = resolved(folder_of(path));
      const auto target = base::read_link(path);
      if (!target) return add_once(plan_.kept, folder + "/" + name_of(path));
      plan_.kept_links.emplace_back(folder, name_of(path));
      path = target->starts_with('/') ? *target : folder + "/" + *target;
    }
  }

  void allow_by_profile() {
    // A version manager's shim executes whatever it manages.
    if (is_shim(program_.script)) {
      add_once(plan_.executable, folder_of(folder_of(program_.script)));
    }
    for (const auto& runtime : agent_.runtimes) allow_program(runtime.path);
    for (const auto& script : agent_.scripts) allow(script.path);
    for (const auto& helper : agent_.helpers) allow_program(helper.path);
    for (const auto& server : agent_.servers) {
      if (server.is_kept) allow_program(server.path);
    }
    for (const auto& folder : site_.copies) add_once(plan_.executable, folder);
  }

  void allow_by_rules() {
    for (const auto& rule : site_.spec.routes) {
      if (rule.action == contexts::RuleAction::here) allow_matches(rule.program);
    }
  }

  void allow_matches(const std::string& pattern) {
    const auto wildcard = pattern.find_first_of("*?[\\");
    if (wildcard == std::string::npos) return allow_program(pattern);
    const auto folder = pattern.substr(0, pattern.rfind('/', wildcard) + 1);
    std::error_code error;
    std::size_t walked = 0;
    using Walk = std::filesystem::recursive_directory_iterator;
    for (Walk at(folder, std::filesystem::directory_options::skip_permission_denied, error), end;
         !error && at != end && walked < kMaxWalked; at.increment(error), ++walked) {
      const std::string path = at->path();
      if (::fnmatch(pattern.c_str(), path.c_str(), 0) == 0) allow_program(path);
    }
  }

  void allow_program(const std::string& path) {
    const auto program = inspect_program(path, {}, "/");
    if (!program) return;
    for (const auto& file : program->files) allow(file);
  }

  const Agent& agent_;
  const Program& program_;
  const FarmSite& site_;
  FarmPlan plan_;
};

}  // namespace

std::vector<std::string> system_bin_folders() {
  std::vector<std::string> folders;
  for (const char* folder : kSystemFolders) {
    if (is_folder(folder)) add_once(folders, resolved(folder));
  }
  return folders;
}

FarmPlan plan_farm(const Agent& agent, const FarmSite& site) { return Planner(agent, site).make(); }

}  // namespace routerd
