#include "routerd/config_api.h"

#include <algorithm>
#include <set>

namespace routerd {
namespace {

using ports::Expose;
using std::string_view;

constexpr Choice<Expose> kExpose[] = {{"loopback", Expose::loopback}, {"all", Expose::all}};

std::vector<std::string> read_words(ConfigReader& reader, const Field& field,
                                    string_view expected) {
  std::vector<std::string> words;
  reader.for_each_item(field, [&](const Field& item) {
    auto word = reader.text(item, expected);
    if (!word) return;
    const bool is_plain =
        std::ranges::all_of(*word, [](char c) { return c > ' ' && c < 0x7f && c != ','; });
    if (is_plain) return words.push_back(std::move(*word));
    reader.fail_expected(item, expected);
  });
  return words;
}

/// Its folder is hidden in contexts, so it must be one that they can do without.
void read_tokens_file(ConfigReader& reader, const Field& field, ApiConfig& api) {
  static const std::set<string_view> kShared = {
      "",      "/bin", "/dev", "/etc", "/home", "/lib", "/opt",       "/proc",
      "/root", "/run", "/srv", "/sys", "/tmp",  "/usr", "/usr/local", "/var"};
  auto path = reader.path(field, "an absolute path without '.' and '..'");
  if (!path) return;
  const std::string folder = path->substr(0, path->rfind('/'));
  if (kShared.contains(folder)) {
    return reader.fail_expected(field, "a file in a folder of its own, as /etc/airlock/tokens.json",
                                " (contexts do not see that folder)");
  }
  api.tokens_file = std::move(*path);
}

constexpr Key<ApiConfig> kApiKeys[] = {
    {"port",
     [](ConfigReader& reader, const Field& field, ApiConfig& api) {
       if (const auto port = reader.number(field, 1, 65535)) {
         api.port = static_cast<std::uint16_t>(*port);
       }
     }},
    {"expose", [](ConfigReader& reader, const Field& field,
                  ApiConfig& api) { set(api.expose, reader.choice(field, kExpose)); }},
    {"tokens_file", read_tokens_file},
    {"hosts",
     [](ConfigReader& reader, const Field& field, ApiConfig& api) {
       api.hosts = read_words(reader, field, "the name of a host, without a port");
     }},
    {"origins",
     [](ConfigReader& reader, const Field& field, ApiConfig& api) {
       api.origins = read_words(reader, field, "an origin, as https://app.example");
     }},
    {"requests_per_second",
     [](ConfigReader& reader, const Field& field, ApiConfig& api) {
       if (const auto number = reader.number(field, 1, 1'000'000)) {
         api.requests_per_second = static_cast<std::uint32_t>(*number);
       }
     }},
};

}  // namespace

void read_api(ConfigReader& reader, const Field& field, Config& config) {
  config.api.is_wanted = true;
  read_map<ApiConfig>(reader, field, kApiKeys, config.api);
}

void add_api_service(ConfigReader& reader, Config& config) {
  const ApiConfig& api = config.api;
  if (!api.is_wanted) return;
  services::ServiceSpec spec;
  spec.name = ApiConfig::kService;
  spec.command = {ApiConfig::kService};
  spec.is_api = true;
  spec.handing = services::Handing::listen_fds;
  // Clients wait in the port's backlog meanwhile.
  spec.restart_delay = std::chrono::milliseconds(20);
  spec.max_restart_delay = std::chrono::milliseconds(500);
  spec.ready.kind = services::Probe::Kind::http;
  spec.ready.path = "/ready";
  spec.ports = {{.key = {ports::Protocol::tcp, api.port}, .expose = api.expose, .name = "http"}};
  for (const auto& other : config.services) {
    const bool is_taken =
        other.name == spec.name || std::ranges::any_of(other.ports, [&](const auto& port) {
          return port.key == spec.ports.front().key;
        });
    if (!is_taken) continue;
    return reader.fail(YamlNode{}, "'api': its port " + std::to_string(api.port) +
                                       " or its name is service " + quote(other.name) +
                                       "'s already");
  }
  config.services.push_back(std::move(spec));
  std::ranges::sort(config.services, {}, &services::ServiceSpec::name);
}

}  // namespace routerd
