#include "contexts/cgroups.h"

#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file.h"

namespace contexts {

using base::Result;
using std::string_view;

namespace {

constexpr string_view kPrefix = "airlock-";
constexpr const char* kControllers[] = {"pids", "memory", "cpu"};

/// Calls `take` for each part of `text` between separators.
template <class Take>
void split(string_view text, char separator, Take take) {
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool contains_word(string_view list, string_view word, char separator) {
  bool found = false;
  split(list, separator, [&](string_view each) { found |= each == word; });
  return found;
}

/// One cgroup mount: what of its hierarchy it shows, and where.
struct Mount {
  string_view root;
  string_view point;
  string_view options;
  bool is_v2 = false;
};

std::optional<Mount> parse_mount(string_view line) {
  std::vector<string_view> fields;
  split(line, ' ', [&](string_view field) { fields.push_back(field); });
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (fields.size() < 6 || fields.end() - dash < 4) return std::nullopt;
  const auto type = dash[1];
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  return Mount{fields[3], fields[4], dash[3], type == "cgroup2"};
}

/// Path of this process in the hierarchy of `controller` (empty: version 2's).
std::optional<string_view> own_path(string_view own_cgroups, string_view controller) {
  std::optional<string_view> path;
  split(own_cgroups, '\n', [&](string_view line) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return;
    const auto names = line.substr(first + 1, second - first - 1);
    const bool is_it = controller.empty() ? names.empty() : contains_word(names, controller, ',');
    if (is_it) path = line.substr(second + 1);
  });
  return path;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

std::optional<CgroupPlace> place_of(string_view controller, string_view mountinfo,
                                    string_view own_cgroups) {
  std::optional<CgroupPlace> place;
  split(mountinfo, '\n', [&](string_view line) {
    const auto mount = parse_mount(line);
    if (!mount || (!mount->is_v2 && !contains_word(mount->options, controller, ','))) return;
    if (place && mount->is_v2) return;  // a controller is in version 1 or in version 2
    auto path = own_path(own_cgroups, mount->is_v2 ? "" : controller);
    if (!path) return;
    if (mount->root != "/" && path->starts_with(mount->root)) {
      path->remove_prefix(mount->root.size());
    }
    std::string folder(mount->point);
    if (*path != "/") folder += *path;
    CgroupPlace found{{folder}, mount->is_v2};
    if (mount->is_v2 && folder.size() > mount->point.size()) {
      found.folders.push_back(parent_of(folder));
    }
    place = std::move(found);
  });
  return place;
}

namespace {

std::optional<CgroupPlace> find_place(string_view controller) {
  const auto mountinfo = base::read_file("/proc/self/mountinfo");
  const auto own = base::read_file("/proc/self/cgroup");
  if (!mountinfo || !own) return std::nullopt;
  return place_of(controller, *mountinfo, *own);
}

/// Version 2: children of `folder` have `controller`.
Result<void> delegate(const std::string& folder, const std::string& controller) {
  const auto enabled = base::read_file(folder + "/cgroup.subtree_control");
  if (!enabled) return tl::unexpected<base::Error>(enabled.error());
  if (contains_word(string_view(*enabled).substr(0, enabled->find('\n')), controller, ' ')) {
    return {};
  }
  return base::write_file(folder + "/cgroup.subtree_control", "+" + controller, 0);
}

std::string random_name(const std::string& context) {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", number);
  return std::string(kPrefix) + digits + "-" + context;
}

Result<void> set(const std::string& file, const std::string& value) {
  return base::write_file(file, value, 0);
}

Result<void> set_pids(const std::string& folder, std::uint64_t pids) {
  return set(folder + "/pids.max", std::to_string(pids));
}

/// Without swap: what is beyond memory is beyond the limit.
Result<void> set_memory(const std::string& folder, bool is_v2, std::uint64_t bytes) {
  const std::string text = std::to_string(bytes);
  auto done = set(folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"), text);
  if (!done) return done;
  const std::string swap = folder + (is_v2 ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes");
  if (::access(swap.c_str(), F_OK) != 0) return {};
  return set(swap, is_v2 ? "0" : text);
}

constexpr std::uint64_t kPeriodUs = 100'000;

Result<void> set_cpu(const std::string& folder, bool is_v2, std::uint64_t hundredths) {
  const std::string quota = std::to_string(hundredths * kPeriodUs / 100);
  if (is_v2) return set(folder + "/cpu.max", quota + " " + std::to_string(kPeriodUs));
  auto done = set(folder + "/cpu.cfs_period_us", std::to_string(kPeriodUs));
  return done ? set(folder + "/cpu.cfs_quota_us", quota) : done;
}

Result<void> set_limit(const std::string& folder, bool is_v2, const std::string& limit,
                       const Limits& limits) {
  if (limit == "pids") return set_pids(folder, limits.pids);
  if (limit == "memory") return set_memory(folder, is_v2, limits.memory);
  return set_cpu(folder, is_v2, limits.cpu_hundredths);
}

std::uint64_t wanted(const std::string& limit, const Limits& limits) {
  if (limit == "pids") return limits.pids;
  return limit == "memory" ? limits.memory : limits.cpu_hundredths;
}

/// The number after `key` and a space in a file of such lines; 0 if there is none.
std::uint64_t number_in(const std::string& file, string_view key) {
  const auto text = base::read_file(file);
  std::uint64_t number = 0;
  if (!text) return number;
  split(*text, '\n', [&](string_view line) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ') return;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), number);
  });
  return number;
}

}  // namespace

Cgroups& Cgroups::operator=(Cgroups&& other) noexcept {
  if (this == &other) return *this;
  remove();
  name_ = std::exchange(other.name_, {});
  groups_ = std::exchange(other.groups_, {});
  kept_ = std::exchange(other.kept_, {});
  limits_ = std::exchange(other.limits_, {});
  reasons_ = std::exchange(other.reasons_, {});
  return *this;
}

namespace {

/// Beside the limits' names: a cgroup that limits nothing.
constexpr const char* kMark = "sockets";

}  // namespace

Cgroups Cgroups::create(const std::string& name, const Limits& limits) {
  Cgroups made;
  made.name_ = random_name(name);
  made.limits_ = limits;
  for (const char* limit : kControllers) {
    if (wanted(limit, limits) == 0) continue;
    if (auto done = made.make(limit); !done) {
      made.reasons_[limit] = done.error().message();
    }
  }
  return made;
}

void Cgroups::mark_sockets() {
  const auto is_v2 = [](const auto& group) { return group.second.is_v2; };
  if (std::ranges::any_of(groups_, is_v2)) return;
  if (auto made = make(kMark); !made) reasons_[kMark] = made.error().message();
}

std::uint64_t Cgroups::id() const {
  for (const auto& [parent, group] : groups_) {
    struct stat info {};
    if (group.is_v2 && ::stat(group.folder.c_str(), &info) == 0) return info.st_ino;
  }
  return 0;
}

Result<void> Cgroups::make(const std::string& limit) {
  const bool is_mark = limit == kMark;
  const auto place = find_place(is_mark ? "" : limit);
  if (!place) return base::failure("no cgroups with the controller " + limit, 0);
  Result<void> done;
  for (const auto& parent : place->folders) {
    if (place->is_v2 && !is_mark) done = delegate(parent, limit);
    if (!done) continue;
    const std::string folder = parent + "/" + name_;
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      done = base::os_error("mkdir " + folder);
      continue;
    }
    groups_[parent] = {folder, place->is_v2};
    if (!is_mark) done = set_limit(folder, place->is_v2, limit, limits_);
    if (!done) continue;
    kept_[limit] = parent;
    return {};
  }
  return done;
}

std::string Cgroups::keeps(const std::string& limit) const {
  const auto found = kept_.find(limit);
  if (found == kept_.end()) return {};
  return groups_.at(found->second).is_v2 ? "cgroup v2" : "cgroup v1";
}

std::string Cgroups::why_not(const std::string& limit) const {
  const auto found = reasons_.find(limit);
  return found == reasons_.end() ? "" : found->second;
}

Result<void> Cgroups::add(pid_t pid) {
  constexpr int kTries = 100;
  const auto kept = kept_;
  for (const auto& [limit, parent] : kept) {
    const auto enter = [&, &parent = parent] {
      return set(groups_.at(parent).folder + "/cgroup.procs", std::to_string(pid));
    };
    auto done = enter();
    // While it was empty another daemon has taken it for a stale one.
    for (int tries = 0; !done && done.error().code == ENOENT && tries < kTries; ++tries) {
      done = make(limit);
      if (done) done = enter();
    }
    if (!done) return done;
  }
  return {};
}

std::uint64_t Cgroups::hits(const std::string& limit) const {
  const auto found = kept_.find(limit);
  if (found == kept_.end()) return 0;
  const auto& group = groups_.at(found->second);
  if (limit == "pids") return number_in(group.folder + "/pids.events", "max");
  if (limit == "cpu") return number_in(group.folder + "/cpu.stat", "nr_throttled");
  return number_in(group.folder + (group.is_v2 ? "/memory.events" : "/memory.oom_control"),
                   "oom_kill");
}

void Cgroups::remove() {
  for (const auto& [parent, group] : groups_) (void)::rmdir(group.folder.c_str());
  groups_.clear();
  kept_.clear();
}

void remove_stale_cgroups() {
  std::vector<std::string> controllers(std::begin(kControllers), std::end(kControllers));
  controllers.emplace_back();  // version 2 without any
  for (const auto& controller : controllers) {
    const auto place = find_place(controller);
    if (!place) continue;
    for (const auto& folder : place->folders) {
      DIR* entries = ::opendir(folder.c_str());
      if (entries == nullptr) continue;
      while (const dirent* entry = ::readdir(entries)) {
        if (!string_view(entry->d_name).starts_with(kPrefix)) continue;
        (void)::rmdir((folder + "/" + entry->d_name).c_str());
      }
      ::closedir(entries);
    }
  }
}

}  // namespace contexts
