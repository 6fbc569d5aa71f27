#include "routerd/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "routerd/config_api.h"
#include "routerd/config_audit.h"
#include "routerd/config_context.h"
#include "routerd/config_reader.h"
#include "routerd/config_services.h"
#include "routerd/config_yaml.h"

namespace routerd {
namespace {

using std::string_view;

constexpr std::size_t kMaxErrors = 100;     // more help nobody
constexpr std::size_t kMaxContexts = 1000;  // keeps the search for circles shallow

constexpr const char* kTooLarge = "larger than 1 MiB";

constexpr Choice<contexts::EnvPolicy::Base> kEnvBase[] = {
    {"clean", contexts::EnvPolicy::Base::clean}, {"inherit", contexts::EnvPolicy::Base::inherit}};
constexpr Choice<RequiredTier> kRequiredTier[] = {
    {"isolated", RequiredTier::isolated}, {"namespaces", RequiredTier::namespaces},
    {"userns", RequiredTier::userns},     {"uids", RequiredTier::uids},
    {"landlock", RequiredTier::landlock}, {"none", RequiredTier::none}};
constexpr Choice<LogLevel> kLogLevel[] = {{"trace", LogLevel::trace}, {"debug", LogLevel::debug},
                                          {"info", LogLevel::info},   {"warn", LogLevel::warn},
                                          {"error", LogLevel::error}, {"off", LogLevel::off}};

std::vector<std::string> read_secrets(ConfigReader& reader, const Field& field) {
  std::vector<std::string> secrets;
  reader.for_each_item(field, [&](const Field& item) {
    auto secret = reader.text(item, "the value of a secret");
    if (!secret) return;
    if (secret->size() >= contexts::kMinSecretSize) return secrets.push_back(std::move(*secret));
    reader.fail(item, "expected at least " + std::to_string(contexts::kMinSecretSize) +
                          " bytes, found " + std::to_string(secret->size()) +
                          " (so short a secret would be found by chance)");
  });
  return secrets;
}

constexpr Key<Config> kTopKeys[] = {
    {"contexts", read_contexts},
    {"secrets", [](ConfigReader& reader, const Field& field,
                   Config& config) { config.secrets = read_secrets(reader, field); }},
    {"env_base", [](ConfigReader& reader, const Field& field,
                    Config& config) { set(config.env_base, reader.choice(field, kEnvBase)); }},
    {"require_tier",
     [](ConfigReader& reader, const Field& field, Config& config) {
       set(config.require_tier, reader.choice(field, kRequiredTier));
     }},
    {"log_level", [](ConfigReader& reader, const Field& field,
                     Config& config) { set(config.log_level, reader.choice(field, kLogLevel)); }},
    {"runtime_dir",
     [](ConfigReader& reader, const Field& field, Config& config) {
       set(config.runtime_dir, reader.path(field, "an absolute path without '.' and '..'"));
     }},
    {"log_dir",
     [](ConfigReader& reader, const Field& field, Config& config) {
       set(config.log_dir, reader.path(field, "an absolute path without '.' and '..'"));
     }},
    {"services", read_services},
    {"control", read_control},
    {"api", read_api},
    {"audit", read_audit},
};

void read_root(ConfigReader& reader, const YamlNode& root, Config& config) {
  if (root.kind != YamlNode::Kind::map && root.kind != YamlNode::Kind::null) {
    const auto found = describe(root.kind);
    return reader.fail(root, std::string("expected a map of settings, found ").append(found));
  }
  reader.for_each_entry({root, root}, [&](const Field& entry) {
    read_entry<Config>(reader, entry, kTopKeys, config);
  });
}

std::vector<ContextReference> check_references(ConfigReader& reader, const Config& config) {
  std::vector<string_view> names;
  for (const auto& [name, context] : config.contexts) names.push_back(name);
  std::vector<ContextReference> routes;
  const std::vector<ContextReference> references = reader.references();
  for (const ContextReference& reference : references) {
    const YamlNode place{.line = reference.line, .column = reference.column};
    if (!config.contexts.contains(reference.to)) {
      std::string hint = suggestion(reference.to, names);
      if (hint.empty() && names.size() < 10) hint = "; expected " + join_words(names);
      reader.fail(place, "unknown context " + quote(reference.to) + hint);
    } else if (reference.is_route && reference.from == reference.to) {
      reader.fail(place, "context " + quote(reference.to) + " routes to itself");
    } else if (reference.is_route) {
      routes.push_back(reference);
    }
  }
  return routes;
}

// Depth-first search for contexts that are routed to from themselves. Each circle is found once.
class CircleSearch {
 public:
  CircleSearch(ConfigReader& reader, std::span<const ContextReference> routes) : reader_(reader) {
    std::set<std::pair<string_view, string_view>> seen;
    for (const ContextReference& route : routes) {
      if (seen.emplace(route.from, route.to).second) routes_[route.from].push_back(&route);
    }
  }

  void run() {
    for (const auto& [name, routes] : routes_) visit(name);
  }

 private:
  enum class State { unseen, on_trail, done };

  void visit(string_view name) {
    if (states_[name] != State::unseen) return;
    states_[name] = State::on_trail;
    const auto routes = routes_.find(name);
    for (const ContextReference* route :
         routes == routes_.end() ? std::vector<const ContextReference*>() : routes->second) {
      trail_.push_back(route);
      if (states_[route->to] == State::on_trail) report();
      visit(route->to);
      trail_.pop_back();
    }
    states_[name] = State::done;
  }

  // The trail's last route closes the circle. A default has no place in the file.
  void report() {
    const auto begin = std::ranges::find(trail_, trail_.back()->to, &ContextReference::from);
    std::string circle = trail_.back()->to;
    YamlNode place;
    for (auto route = begin; route != trail_.end(); ++route) {
      circle += " -> " + (*route)->to;
      if ((*route)->line > 0) place = {.line = (*route)->line, .column = (*route)->column};
    }
    reader_.fail(place, "contexts route in a circle: " + circle);
  }

  ConfigReader& reader_;
  std::map<string_view, std::vector<const ContextReference*>> routes_;
  std::map<string_view, State> states_;
  std::vector<const ContextReference*> trail_;
};

void check(ConfigReader& reader, const Config& config) {
  if (config.contexts.size() > kMaxContexts) {
    reader.fail(YamlNode{}, "expected at most " + std::to_string(kMaxContexts) +
                                " contexts, found " + std::to_string(config.contexts.size()));
    return;
  }
  std::vector<ContextReference> routes = check_references(reader, config);
  for (const auto& [name, context] : default_config().contexts) {
    const std::string& target = config.contexts.at(name).child_context;
    if (!target.empty() && target == context.child_context) routes.push_back({name, target, true});
  }
  CircleSearch(reader, routes).run();
  check_services(reader, config);
}

std::vector<ConfigError> in_order_of_file(std::vector<ConfigError> errors,
                                          const std::string& file) {
  std::ranges::stable_sort(errors, [](const ConfigError& a, const ConfigError& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (errors.size() > kMaxErrors) {
    const std::size_t left_out = errors.size() - kMaxErrors;
    errors.resize(kMaxErrors);
    errors.push_back({file, 0, 0, std::to_string(left_out) + " more errors"});
  }
  return errors;
}

tl::unexpected<std::vector<ConfigError>> file_error(const std::string& file, std::string message) {
  return tl::unexpected(std::vector<ConfigError>{{file, 0, 0, std::move(message)}});
}

}  // namespace

std::string ConfigError::render() const {
  if (line == 0) return file + ": " + message;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message;
}

Config default_config() {
  Config config;
  ContextConfig& platform = config.contexts["platform"];
  platform.child_context = "user";
  platform.route_child = contexts::RouteChild::automatic;
  config.contexts["user"];
  return config;
}

ConfigResult parse_config(string_view text, const std::string& file_name) {
  if (text.size() > kMaxConfigSize) return file_error(file_name, kTooLarge);
  const auto root = parse_yaml(text, file_name);
  if (!root) return tl::unexpected(std::vector<ConfigError>{root.error()});
  Config config = default_config();
  ConfigReader reader(file_name);
  read_root(reader, *root, config);
  add_api_service(reader, config);
  check(reader, config);
  std::vector<ConfigError> errors = in_order_of_file(reader.take_errors(), file_name);
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return config;
}

ConfigResult load_config(const std::string& path) {
  const auto text = base::read_file(path, kMaxConfigSize);
  if (text) return parse_config(*text, path);
  if (text.error().code == EFBIG) return file_error(path, kTooLarge);
  return file_error(path, std::string("cannot read: ") + std::strerror(text.error().code));
}

}  // namespace routerd
