#include "routerd/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <tuple>

#include "base/file.h"
#include "routerd/config_reader.h"
#include "routerd/config_yaml.h"

namespace routerd {
namespace {

using std::string_view;
using Errors = std::vector<ConfigError>;

constexpr std::size_t kMaxErrors = 100;
constexpr std::size_t kMaxNameSize = 32;
constexpr std::size_t kMaxItems = 100;  // of a list; each becomes a glob(3)

bool has_dots(string_view path) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const string_view part = path.substr(at, end - at);
    if (part == "." || part == "..") return true;
    at = end + 1;
  }
  return false;
}

bool is_variable_path(string_view text) {
  if (!text.starts_with('$')) return false;
  const auto is_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const string_view name = text.substr(1, text.find('/') - 1);
  return !name.empty() && std::ranges::all_of(name, is_name);
}

/// "/…", "~/…" or "$NAME/…", and more than that.
bool is_place(string_view text) {
  if (has_dots(text) || text.ends_with('/')) return false;
  return (text.starts_with('/') || text.starts_with("~/") || is_variable_path(text)) &&
         text.find('/') != string_view::npos;
}

/// "$NAME" alone is a folder, too.
bool is_folder_place(string_view text) { return is_place(text) || is_variable_path(text); }

bool is_package_pattern(string_view text) {
  return !text.ends_with('/') && text.size() > 2 && !has_dots(text) &&
         (text.starts_with('/') || text.starts_with("~/") || text.starts_with("*/"));
}

/// Relative; ".." only at its begin, for packages side by side.
bool is_package_file(string_view text) {
  while (text.starts_with("../")) text.remove_prefix(3);
  return !text.empty() && !text.starts_with('/') && !text.ends_with('/') && !has_dots(text);
}

bool is_file_name(string_view text) {
  return text.find('/') == string_view::npos && text != "." && text != "..";
}

bool is_name_pattern(string_view text) { return text.find('=') == string_view::npos; }

/// A list of strings that all pass `is_valid`.
std::vector<std::string> read_list(ConfigReader& reader, const Field& field,
                                   bool (*is_valid)(string_view), string_view expected) {
  std::vector<std::string> list;
  reader.for_each_item(field, [&](const Field& item) {
    auto text = reader.text(item, expected);
    if (!text) return;
    if (!is_valid(*text)) return reader.fail_expected(item, expected);
    if (list.size() < kMaxItems) return list.push_back(std::move(*text));
    reader.fail(item, "expected at most " + std::to_string(kMaxItems) + " items");
  });
  return list;
}

void read_pid_helpers(ConfigReader& reader, const Field& field, AgentProfile& profile) {
  constexpr string_view kExpected = "a program and at least one option, as \"ps -p\"";
  reader.for_each_item(field, [&](const Field& item) {
    const auto text = reader.text(item, kExpected);
    if (!text) return;
    std::istringstream words(*text);
    PidHelperRule rule;
    words >> rule.program;
    bool is_valid = is_file_name(rule.program);
    for (std::string word; words >> word;) {
      is_valid = is_valid && word.starts_with('-') && word.size() > 1;
      rule.options.push_back(std::move(word));
    }
    if (!is_valid || rule.options.empty()) return reader.fail_expected(item, kExpected);
    profile.pid_helpers.push_back(std::move(rule));
  });
}

constexpr string_view kProgramPlace =
    "an absolute path or a glob of one, or one that starts with ~/ or $NAME/";
constexpr string_view kFolderPlace =
    "an absolute path without '.' and '..', or one that starts with ~/ or $NAME";

struct ServerDraft {
  ServerRule rule;
  bool has_program = false;
  bool has_action = false;
};

constexpr Choice<ServerAction> kServerAction[] = {{"keep", ServerAction::keep},
                                                  {"route", ServerAction::route}};

constexpr Key<ServerDraft> kServerKeys[] = {
    {"program",
     [](ConfigReader& reader, const Field& field, ServerDraft& draft) {
       draft.has_program = true;
       auto text = reader.text(field, kProgramPlace);
       if (text && !is_place(*text)) return reader.fail_expected(field, kProgramPlace);
       set(draft.rule.program, std::move(text));
     }},
    {"action",
     [](ConfigReader& reader, const Field& field, ServerDraft& draft) {
       draft.has_action = true;
       set(draft.rule.action, reader.choice(field, kServerAction));
     }},
};

void read_servers(ConfigReader& reader, const Field& field, AgentProfile& profile) {
  reader.for_each_item(field, [&](const Field& item) {
    ServerDraft draft;
    read_map<ServerDraft>(reader, item, kServerKeys, draft);
    if (item.value.kind != YamlNode::Kind::map) return;  // has its error
    if (!draft.has_program) reader.fail(item, "expected 'program' in each server, found none");
    if (!draft.has_action) {
      reader.fail(item, "expected 'action' in each server (keep or route), found none");
    }
    profile.servers.push_back(std::move(draft.rule));
  });
}

constexpr string_view kNamePattern = "the name of a variable or a glob";

constexpr Key<AgentProfile> kEnvKeys[] = {
    {"pass",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.pass_env = read_list(reader, field, is_name_pattern, kNamePattern);
     }},
    {"block",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.block_env = read_list(reader, field, is_name_pattern, kNamePattern);
     }},
};

constexpr string_view kPackageFile = "a path or glob relative to the package";

constexpr Key<AgentProfile> kKeys[] = {
    {"title", [](ConfigReader& reader, const Field& field,
                 AgentProfile& profile) { set(profile.title, reader.text(field, "a name")); }},
    {"commands",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.commands = read_list(reader, field, is_file_name, "the name of a program");
     }},
    {"packages",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.packages = read_list(reader, field, is_package_pattern,
                                    "a folder: a path or glob that starts with /, ~/ or */");
     }},
    {"runtimes",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.runtimes = read_list(reader, field, is_package_file, kPackageFile);
     }},
    {"scripts",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.scripts = read_list(reader, field, is_package_file, kPackageFile);
     }},
    {"copies",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.copies = read_list(reader, field, is_folder_place, kFolderPlace);
     }},
    {"share",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.share = read_list(reader, field, is_folder_place, kFolderPlace);
     }},
    {"hide",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       profile.hide = read_list(reader, field, is_folder_place, kFolderPlace);
     }},
    {"pid_helpers", read_pid_helpers},
    {"servers", read_servers},
    {"env",
     [](ConfigReader& reader, const Field& field, AgentProfile& profile) {
       read_map<AgentProfile>(reader, field, kEnvKeys, profile);
     }},
};

// What no key can judge alone.
void check(ConfigReader& reader, const AgentProfile& profile) {
  const YamlNode top;
  if (profile.packages.empty()) {
    reader.fail(top, "expected 'packages': without them no program is recognised as this agent");
  } else if (profile.runtimes.empty() && profile.scripts.empty()) {
    reader.fail(top, "expected 'runtimes' or 'scripts': the files that are the agent itself");
  }
}

tl::unexpected<Errors> file_error(const std::string& file, std::string message) {
  return tl::unexpected(Errors{{file, 0, 0, std::move(message)}});
}

std::string name_of_file(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

}  // namespace

bool is_profile_name(string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= kMaxNameSize && name.front() >= 'a' &&
         name.front() <= 'z' && std::ranges::all_of(name, is_allowed);
}

tl::expected<AgentProfile, Errors> parse_profile(string_view text, const std::string& name,
                                                 const std::string& file_name) {
  if (!is_profile_name(name)) {
    return file_error(file_name,
                      "expected a file called NAME.yaml (a to z, then up to 31 of a-z 0-9 _ -)");
  }
  if (text.size() > kMaxConfigSize) return file_error(file_name, "larger than 1 MiB");
  const auto root = parse_yaml(text, file_name);
  if (!root) return tl::unexpected(Errors{root.error()});
  AgentProfile profile{.name = name, .title = name, .file = file_name};
  ConfigReader reader(file_name);
  const bool is_map = root->kind == YamlNode::Kind::map || root->kind == YamlNode::Kind::null;
  if (is_map) {
    read_map<AgentProfile>(reader, {*root, *root}, kKeys, profile);
    check(reader, profile);
  } else {
    reader.fail(*root,
                std::string("expected a map of settings, found ").append(describe(root->kind)));
  }
  Errors errors = reader.take_errors();
  std::ranges::stable_sort(errors, [](const ConfigError& a, const ConfigError& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (errors.size() > kMaxErrors) errors.resize(kMaxErrors);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return profile;
}

tl::expected<AgentProfile, Errors> load_profile(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return file_error(path, std::string("cannot read: ") + std::strerror(errno));
  }
  const bool is_ours = info.st_uid == 0 || info.st_uid == ::geteuid();
  if (!is_ours || (info.st_mode & S_IWOTH) != 0) {
    return file_error(path, is_ours ? "anybody can write it, so it is not used; chmod o-w"
                                    : "belongs to another user, so it is not used");
  }
  const auto text = base::read_file(path, kMaxConfigSize);
  if (text) return parse_profile(*text, name_of_file(path), path);
  return file_error(path, std::string("cannot read: ") + std::strerror(text.error().code));
}

}  // namespace routerd
