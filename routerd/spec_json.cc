#include "routerd/spec_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "routerd/launch.h"

namespace routerd {

using json = nlohmann::json;
using contexts::ContextSpec;
using contexts::Isolation;
using contexts::RouteChild;

namespace {

constexpr std::pair<Isolation, const char*> kIsolations[] = {
    {Isolation::secure, "secure"}, {Isolation::strict, "strict"}, {Isolation::none, "none"}};
constexpr std::pair<contexts::Rootfs, const char*> kRootfs[] = {
    {contexts::Rootfs::automatic, "auto"},
    {contexts::Rootfs::overlay, "overlay"},
    {contexts::Rootfs::shared, "shared"}};
constexpr std::pair<RouteChild, const char*> kRouteChild[] = {
    {RouteChild::automatic, "auto"}, {RouteChild::always, "always"}, {RouteChild::never, "never"}};

template <class Enum, std::size_t N>
std::string name_in(const std::pair<Enum, const char*> (&names)[N], Enum value) {
  for (const auto& [each, name] : names) {
    if (each == value) return name;
  }
  return {};
}

template <class Enum, std::size_t N>
base::Result<Enum> value_in(const std::pair<Enum, const char*> (&names)[N],
                            const std::string& field, const std::string& text) {
  std::string expected;
  for (const auto& [value, name] : names) {
    if (text == name) return value;
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  return base::failure(field + " '" + text.substr(0, 64) + "'", EINVAL, "expected " + expected);
}

base::Result<void> apply_env(ContextSpec& spec, const json& env) {
  if (!env.is_object()) return base::failure("env", EINVAL, "expected an object of strings");
  for (const auto& [name, value] : env.items()) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return base::failure("env name '" + name.substr(0, 64) + "'", EINVAL,
                           "no '=', no NUL, not empty");
    }
    std::erase_if(spec.env.pinned, [&name = name](const std::string& entry) {
      return entry.starts_with(name + "=");
    });
    if (value.is_null()) continue;
    if (!value.is_string())
      return base::failure("env " + name, EINVAL, "expected a string or null");
    spec.env.pinned.push_back(name + "=" + value.get<std::string>());
  }
  return {};
}

}  // namespace

json to_json(const ContextSpec& spec) {
  std::vector<std::string> names;
  for (const auto& entry : spec.env.pinned) names.push_back(entry.substr(0, entry.find('=')));
  return {{"name", spec.name},
          {"cwd", spec.cwd},
          {"childContext", spec.child_context},
          {"routeChild", name_in(kRouteChild, spec.route_child)},
          {"enforce", contexts::name_of(spec.enforce)},
          {"isolation", name_in(kIsolations, spec.isolation)},
          {"rootfs", name_in(kRootfs, spec.rootfs)},
          {"envNames", std::move(names)},
          {"user", spec.user},
          {"persistent", spec.persistent},
          {"home", spec.home},
          {"share", spec.share},
          {"hide", spec.hide},
          {"protect", spec.protect}};
}

namespace {

constexpr std::pair<const char*, std::uint64_t contexts::Limits::*> kLimits[] = {
    {"pids", &contexts::Limits::pids},
    {"memory", &contexts::Limits::memory},
    {"cpuHundredths", &contexts::Limits::cpu_hundredths},
    {"openFiles", &contexts::Limits::open_files},
    {"tmpfs", &contexts::Limits::tmpfs},
    {"execTimeMs", &contexts::Limits::exec_time_ms}};

base::Result<contexts::Limits> limits_from_json(const json& body) {
  contexts::Limits limits;
  if (!body.is_object()) return base::failure("limits", EINVAL, "expected an object of numbers");
  for (const auto& [key, value] : body.items()) {
    const auto known = std::find_if(std::begin(kLimits), std::end(kLimits),
                                    [&key = key](const auto& each) { return key == each.first; });
    if (known == std::end(kLimits)) {
      return base::failure("unknown limit '" + key.substr(0, 64) + "'", EINVAL,
                           "expected pids, memory, cpuHundredths, openFiles, tmpfs, execTimeMs");
    }
    if (!value.is_number_unsigned()) {
      return base::failure("limit " + key, EINVAL, "expected a number, not negative");
    }
    limits.*known->second = value.get<std::uint64_t>();
  }
  return limits;
}

}  // namespace

base::Result<ContextSpec> spec_from_json(const json& body) {
  ContextSpec spec;
  static const std::set<std::string> known = {
      "name", "cwd",   "env",  "childContext", "isolation", "routeChild", "enforce",
      "user", "share", "hide", "limits",       "rootfs",    "persistent", "apiSocket"};
  for (const auto& [key, value] : body.items()) {
    if (!known.contains(key))
      return base::failure("unknown field '" + key.substr(0, 64) + "'", EINVAL);
  }
  spec.name = body.value("name", "");
  spec.cwd = body.value("cwd", "/workspace");
  spec.child_context = body.value("childContext", "");
  spec.user = body.value("user", "");
  spec.persistent = body.value("persistent", true);
  if (const auto asked = body.find("apiSocket"); asked != body.end()) {
    spec.api_socket = asked->get<bool>();
  }
  spec.share = body.value("share", std::vector<std::string>{});
  spec.hide = body.value("hide", std::vector<std::string>{});
  auto isolation = value_in(kIsolations, "isolation", body.value("isolation", "secure"));
  if (!isolation) return tl::unexpected<base::Error>(isolation.error());
  spec.isolation = *isolation;
  auto rootfs = value_in(kRootfs, "rootfs", body.value("rootfs", "auto"));
  if (!rootfs) return tl::unexpected<base::Error>(rootfs.error());
  spec.rootfs = *rootfs;
  auto limits = limits_from_json(body.value("limits", json::object()));
  if (!limits) return tl::unexpected<base::Error>(limits.error());
  spec.limits = *limits;
  const std::string by_default = spec.child_context.empty() ? "never" : "always";
  auto route = value_in(kRouteChild, "routeChild", body.value("routeChild", by_default));
  if (!route) return tl::unexpected<base::Error>(route.error());
  spec.route_child = *route;
  const std::string enforce = body.value("enforce", "auto");
  const auto wanted = contexts::parse_enforce(enforce);
  if (!wanted) {
    return base::failure("enforce '" + enforce.substr(0, 64) + "'", EINVAL,
                         "expected auto, preload, farm, binfmt, ptrace");
  }
  spec.enforce = *wanted;
  if (auto env = apply_env(spec, body.value("env", json::object())); !env) {
    return tl::unexpected<base::Error>(env.error());
  }
  return spec;
}

base::Result<void> change_spec(ContextSpec& spec, const json& changes) {
  ContextSpec changed = spec;
  for (const auto& [key, value] : changes.items()) {
    if (key == "env") {
      if (auto env = apply_env(changed, value); !env) return env;
    } else if (key == "cwd") {
      changed.cwd = value.get<std::string>();
    } else if (key == "persistent") {
      changed.persistent = value.get<bool>();
    } else if (key == "childContext") {
      // Without a router socket from the start nothing could use the route.
      if (spec.child_context.empty()) {
        return base::failure("childContext of '" + spec.name + "'", ENOTSUP,
                             "a context that was made without one gets none; make it anew");
      }
      changed.child_context = value.get<std::string>();
    } else {
      return base::failure("field '" + key.substr(0, 64) + "'", EINVAL,
                           "only env, cwd, persistent and childContext can change");
    }
  }
  if (auto valid = contexts::validate(changed); !valid) return valid;
  spec = std::move(changed);
  return {};
}

}  // namespace routerd
