#include "routerd/config_context.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "routerd/config_limits.h"
#include "routerd/config_quantity.h"

namespace routerd {
namespace {

using contexts::Isolation;
using contexts::Rootfs;
using contexts::RouteChild;
using contexts::RuleAction;
using contexts::Terminals;
using std::string_view;

constexpr std::size_t kMaxUserSize = 32;          // of a user, bytes; as useradd(8)
constexpr std::uint64_t kMaxUid = 4'294'967'294;  // the next is (uid_t)-1, "no change"
constexpr string_view kAbsolutePath = "an absolute path without '.' and '..'";

constexpr Choice<RouteChild> kRouteChild[] = {{"auto", RouteChild::automatic},
                                              {"always", RouteChild::always},
                                              {"never", RouteChild::never},
                                              {"true", RouteChild::always},
                                              {"false", RouteChild::never}};
constexpr Choice<Isolation> kIsolation[] = {
    {"secure", Isolation::secure}, {"strict", Isolation::strict}, {"none", Isolation::none}};
constexpr Choice<Rootfs> kRootfs[] = {
    {"auto", Rootfs::automatic}, {"overlay", Rootfs::overlay}, {"shared", Rootfs::shared}};
constexpr Choice<PassedFds> kPassedFds[] = {{"all", PassedFds::all}, {"stdio", PassedFds::stdio}};
constexpr Choice<Terminals> kTerminals[] = {
    {"auto", Terminals::automatic}, {"relay", Terminals::relay}, {"share", Terminals::share}};
constexpr Choice<contexts::Enforce> kEnforce[] = {{"auto", {}},
                                                  {"preload", contexts::Mechanism::preload},
                                                  {"farm", contexts::Mechanism::farm},
                                                  {"binfmt", contexts::Mechanism::binfmt},
                                                  {"ptrace", contexts::Mechanism::ptrace}};
constexpr Choice<RuleAction> kRuleAction[] = {
    {"here", RuleAction::here}, {"route", RuleAction::route}, {"refuse", RuleAction::refuse}};

// A context while it is read: what its keys cannot judge alone is judged when all are known.
struct ContextDraft {
  std::string name;
  ContextConfig config = {};
  bool gives_child_context = false;
  const YamlNode* route_child = nullptr;                      // its value, if given
  std::vector<const YamlNode*> routes_to_child_context = {};  // rules that name no target
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

bool is_user_name(string_view name) {
  const auto is_letter = [](char c) { return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_allowed = [&](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.';
  };
  if (name.ends_with('$')) name.remove_suffix(1);
  return !name.empty() && name.size() <= kMaxUserSize && is_letter(name.front()) &&
         std::ranges::all_of(name, is_allowed);
}

std::vector<std::string> read_paths(ConfigReader& reader, const Field& field) {
  std::vector<std::string> paths;
  reader.for_each_item(field, [&](const Field& item) {
    auto path = reader.path(item, kAbsolutePath);
    if (path == "/") {
      reader.fail(item, "expected a file or folder of the root, found '/'");
    } else if (path) {
      paths.push_back(std::move(*path));
    }
  });
  return paths;
}

std::vector<std::string> read_name_patterns(ConfigReader& reader, const Field& field) {
  constexpr string_view kExpected = "the name of a variable or a glob";
  std::vector<std::string> patterns;
  reader.for_each_item(field, [&](const Field& item) {
    auto pattern = reader.text(item, kExpected);
    if (!pattern) return;
    if (pattern->find('=') != std::string::npos) {
      reader.fail(item, "expected the name of a variable or a glob, found a '=' in it");
    } else {
      patterns.push_back(std::move(*pattern));
    }
  });
  return patterns;
}

}  // namespace

std::map<std::string, std::string> read_env(ConfigReader& reader, const Field& field) {
  std::map<std::string, std::string> env;
  reader.for_each_entry(field, [&](const Field& entry) {
    const std::string& name = entry.key.text;
    const bool is_name = !name.empty() && name.find_first_of(string_view("=\0", 2)) == name.npos;
    if (!is_name) {
      // Not quoted: "SECRET=value:" is a way to get it wrong.
      reader.fail(entry.key, "expected the name of a variable, found an empty one or a '=' or NUL");
    } else if (name.starts_with("AIRLOCK_")) {
      reader.fail(entry.key, "expected a variable of yours, found " + quote(name) +
                                 ": AIRLOCK_* are airlock's own");
    } else if (auto value = reader.text_or_empty(entry, "a string (\"\" for an empty one)")) {
      env.emplace(name, std::move(*value));
    }
  });
  return env;
}

std::optional<std::string> read_user(ConfigReader& reader, const Field& field) {
  constexpr string_view kExpected = "a user name or a uid";
  auto text = reader.text(field, kExpected);
  if (!text || is_user_name(*text)) return text;
  if (std::ranges::all_of(*text, is_digit)) {
    const auto uid = reader.number(field, 0, kMaxUid);
    return uid ? std::optional(std::to_string(*uid)) : std::nullopt;
  }
  reader.fail_expected(field, kExpected);
  return std::nullopt;
}

namespace {

// One rule of `routes` while it is read.
struct RuleDraft {
  std::string context;
  contexts::RouteRule rule = {};
  bool has_program = false;
  const YamlNode* action = nullptr;
  const YamlNode* to = nullptr;
};

constexpr Key<RuleDraft> kRuleKeys[] = {
    {"program",
     [](ConfigReader& reader, const Field& field, RuleDraft& draft) {
       draft.has_program = true;
       set(draft.rule.program,
           reader.path(field, "an absolute path or a glob of one, without '.' and '..'"));
     }},
    {"action",
     [](ConfigReader& reader, const Field& field, RuleDraft& draft) {
       draft.action = &field.value;
       set(draft.rule.action, reader.choice(field, kRuleAction));
     }},
    {"to",
     [](ConfigReader& reader, const Field& field, RuleDraft& draft) {
       draft.to = &field.value;
       set(draft.rule.to, reader.context_name(field, draft.context, true));
     }},
};

void read_rule(ConfigReader& reader, const Field& item, ContextDraft& context) {
  RuleDraft draft{.context = context.name};
  read_map<RuleDraft>(reader, item, kRuleKeys, draft);
  const bool is_map = item.value.kind == YamlNode::Kind::map;
  if (!is_map && item.value.kind != YamlNode::Kind::null) return;  // has its error
  if (!draft.has_program) reader.fail(item, "expected 'program' in each rule, found none");
  if (draft.action == nullptr) {
    reader.fail(item, "expected 'action' in each rule (here, route or refuse), found none");
  } else if (draft.to != nullptr && draft.rule.action != RuleAction::route) {
    reader.fail(*draft.to, "expected 'to' with action 'route' only, found it with " +
                               quote(draft.action->text));
  } else if (draft.to == nullptr && draft.rule.action == RuleAction::route) {
    context.routes_to_child_context.push_back(&item.value);
  }
  context.config.routes.push_back(std::move(draft.rule));
}

void read_child_context(ConfigReader& reader, const Field& field, ContextDraft& draft) {
  draft.gives_child_context = true;
  set(draft.config.child_context, reader.context_name(field, draft.name, true));
}

void read_allow_root_from(ConfigReader& reader, const Field& field, ContextDraft& draft) {
  draft.config.allow_root_from.clear();
  reader.for_each_item(field, [&](const Field& item) {
    auto name = reader.context_name(item, draft.name, false);
    if (name) draft.config.allow_root_from.push_back(std::move(*name));
  });
}

void read_lifespan(ConfigReader& reader, const Field& field, std::uint64_t& milliseconds) {
  const auto read = read_duration(reader, field);
  if (!read) return;
  milliseconds = static_cast<std::uint64_t>(read->count());
  if (milliseconds > 0 && milliseconds <= Lifespan::kLongest) return;
  reader.fail_expected(field, "a duration of at most 8760h");
}

constexpr Key<ContextDraft> kContextKeys[] = {
    {"cwd", [](ConfigReader& reader, const Field& field,
               ContextDraft& draft) { set(draft.config.cwd, reader.path(field, kAbsolutePath)); }},
    {"env", [](ConfigReader& reader, const Field& field,
               ContextDraft& draft) { draft.config.env = read_env(reader, field); }},
    {"user", [](ConfigReader& reader, const Field& field,
                ContextDraft& draft) { set(draft.config.user, read_user(reader, field)); }},
    {"child_context", read_child_context},
    {"route_child",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       draft.route_child = &field.value;
       set(draft.config.route_child, reader.choice(field, kRouteChild));
     }},
    {"enforce",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       set(draft.config.enforce, reader.choice(field, kEnforce));
     }},
    {"isolation",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       set(draft.config.isolation, reader.choice(field, kIsolation));
     }},
    {"rootfs",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       set(draft.config.rootfs, reader.choice(field, kRootfs));
     }},
    {"share", [](ConfigReader& reader, const Field& field,
                 ContextDraft& draft) { draft.config.share = read_paths(reader, field); }},
    {"hide", [](ConfigReader& reader, const Field& field,
                ContextDraft& draft) { draft.config.hide = read_paths(reader, field); }},
    {"pass_env",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       draft.config.pass_env = read_name_patterns(reader, field);
     }},
    {"block_env",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       draft.config.block_env = read_name_patterns(reader, field);
     }},
    {"fds", [](ConfigReader& reader, const Field& field,
               ContextDraft& draft) { set(draft.config.fds, reader.choice(field, kPassedFds)); }},
    {"tty", [](ConfigReader& reader, const Field& field,
               ContextDraft& draft) { set(draft.config.tty, reader.choice(field, kTerminals)); }},
    {"persistent",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       set(draft.config.persistent, reader.boolean(field));
     }},
    {"ttl",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       read_lifespan(reader, field, draft.config.lifespan.ttl_ms);
     }},
    {"idle_timeout",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       read_lifespan(reader, field, draft.config.lifespan.idle_timeout_ms);
     }},
    {"api_socket",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       if (const auto wanted = reader.boolean(field)) draft.config.api_socket = *wanted;
     }},
    {"routes",
     [](ConfigReader& reader, const Field& field, ContextDraft& draft) {
       reader.for_each_item(field, [&](const Field& item) { read_rule(reader, item, draft); });
     }},
    {"limits", [](ConfigReader& reader, const Field& field,
                  ContextDraft& draft) { read_limits(reader, field, draft.config.limits); }},
    {"allow_root_from", read_allow_root_from},
};

// What no key can judge alone.
void finish(ConfigReader& reader, const Field& field, ContextDraft& draft) {
  ContextConfig& config = draft.config;
  if (draft.route_child == nullptr && draft.gives_child_context) {
    config.route_child = RouteChild::always;
  }
  if (config.child_context.empty()) {
    if (draft.route_child != nullptr && config.route_child == RouteChild::always) {
      reader.fail(*draft.route_child,
                  "'route_child': expected a 'child_context' with it, found none");
    }
    for (const YamlNode* rule : draft.routes_to_child_context) {
      reader.fail(*rule,
                  "expected 'to' in the rule or 'child_context' in the context, found neither");
    }
  }
  const std::set<string_view> shared(config.share.begin(), config.share.end());
  for (const std::string& path : config.hide) {
    if (!shared.contains(path)) continue;
    reader.fail(field.key,
                quote(field.key.text) + ": found " + quote(path) + " in both 'share' and 'hide'");
  }
}

}  // namespace

void read_contexts(ConfigReader& reader, const Field& field, Config& config) {
  reader.for_each_entry(field, [&](const Field& entry) {
    const std::string& name = entry.key.text;
    if (name == "control") {
      return reader.fail(entry.key, "'control' is reserved for airlock's control plane");
    }
    if (!contexts::is_valid_name(name)) {
      return reader.fail(entry.key,
                         "expected a context name (a to z, then up to 31 of a-z 0-9 _ -), "
                         "found " +
                             quote(name));
    }
    ContextDraft draft{.name = name, .config = config.contexts[name]};
    read_map<ContextDraft>(reader, entry, kContextKeys, draft);
    finish(reader, entry, draft);
    config.contexts[name] = std::move(draft.config);
  });
}

}  // namespace routerd
