#include "routerd/config_services.h"

#include <string.h>

#include "contexts/spec.h"
#include "routerd/config_context.h"
#include "routerd/config_quantity.h"

namespace routerd {
namespace {

using ports::Expose;
using ports::Protocol;
using services::Handing;
using services::Probe;
using services::Restart;
using services::ServiceSpec;
using std::string_view;
using std::chrono::milliseconds;

constexpr string_view kAbsolutePath = "an absolute path without '.' and '..'";
constexpr std::size_t kMaxPortName = 64;
constexpr std::uint64_t kSmallestLog = 4096;
constexpr std::uint64_t kMostLogs = 100;

constexpr Choice<Protocol> kProtocol[] = {{"tcp", Protocol::tcp}, {"udp", Protocol::udp}};
constexpr Choice<Expose> kExpose[] = {{"loopback", Expose::loopback}, {"all", Expose::all}};
constexpr Choice<Handing> kHanding[] = {{"bind", Handing::bind},
                                        {"listen_fds", Handing::listen_fds}};
constexpr Choice<Restart> kRestart[] = {
    {"always", Restart::always}, {"on-failure", Restart::on_failure}, {"never", Restart::never}};
constexpr Choice<Probe::Kind> kProbe[] = {{"none", Probe::Kind::none},
                                          {"accept", Probe::Kind::accept}};

std::vector<std::string> read_command(ConfigReader& reader, const Field& field) {
  std::vector<std::string> words;
  if (field.value.kind == YamlNode::Kind::scalar) {
    reader.fail(field, "expected a list of words, as [program, argument], found a string");
    return words;
  }
  reader.for_each_item(field, [&](const Field& item) {
    if (auto word = reader.text_or_empty(item, "a word")) words.push_back(std::move(*word));
  });
  if (words.empty() || words.front().empty()) reader.fail(field, "expected a program, found none");
  return words;
}

/// A service while it is read.
struct ServiceDraft {
  ServiceSpec spec = {};
  Config* config = nullptr;
  bool has_command = false;
  const YamlNode* ready = nullptr;
};

struct PortDraft {
  ports::PortSpec spec = {};
  bool has_number = false;
};

constexpr Key<PortDraft> kPortKeys[] = {
    {"port",
     [](ConfigReader& reader, const Field& field, PortDraft& draft) {
       draft.has_number = true;
       if (const auto number = reader.number(field, 1, 65535)) {
         draft.spec.key.number = static_cast<std::uint16_t>(*number);
       }
     }},
    {"protocol",
     [](ConfigReader& reader, const Field& field, PortDraft& draft) {
       set(draft.spec.key.protocol, reader.choice(field, kProtocol));
     }},
    {"expose", [](ConfigReader& reader, const Field& field,
                  PortDraft& draft) { set(draft.spec.expose, reader.choice(field, kExpose)); }},
    {"name",
     [](ConfigReader& reader, const Field& field, PortDraft& draft) {
       constexpr string_view kExpected = "a name of up to 64 characters without ':'";
       auto name = reader.text(field, kExpected);
       if (!name) return;
       const bool is_name = name->size() <= kMaxPortName && std::ranges::all_of(*name, [](char c) {
                              return c > ' ' && c < 0x7f && c != ':';
                            });
       if (!is_name) return reader.fail_expected(field, kExpected);
       draft.spec.name = std::move(*name);
     }},
};

/// The service that has a port already, of those read before; empty = none.
string_view holder_of(const ServiceDraft& draft, const ports::PortKey& key) {
  const auto has = [&key](const ServiceSpec& spec) {
    return std::ranges::find(spec.ports, key, &ports::PortSpec::key) != spec.ports.end();
  };
  if (has(draft.spec)) return draft.spec.name;
  const auto& others = draft.config->services;
  const auto found = std::ranges::find_if(others, has);
  return found == others.end() ? string_view{} : string_view(found->name);
}

void read_port(ConfigReader& reader, const Field& item, ServiceDraft& service) {
  PortDraft draft;
  if (item.value.kind == YamlNode::Kind::scalar) {
    kPortKeys[0].read(reader, item, draft);
  } else {
    read_map<PortDraft>(reader, item, kPortKeys, draft);
    if (!draft.has_number) reader.fail(item, "expected 'port' in each of 'ports', found none");
  }
  if (draft.spec.key.number == 0) return;  // has its error
  if (const auto holder = holder_of(service, draft.spec.key); !holder.empty()) {
    return reader.fail(item,
                       to_string(draft.spec.key) + " is service " + quote(holder) + "'s already");
  }
  service.spec.ports.push_back(std::move(draft.spec));
}

constexpr Key<ServiceDraft> kProbeKeys[] = {
    {"http",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       constexpr string_view kExpected = "a path that starts with '/', without spaces";
       auto path = reader.text(field, kExpected);
       if (!path) return;
       const bool is_path = path->front() == '/' &&
                            std::ranges::all_of(*path, [](char c) { return c > ' ' && c < 0x7f; });
       if (!is_path) return reader.fail_expected(field, kExpected);
       draft.spec.ready.kind = Probe::Kind::http;
       draft.spec.ready.path = std::move(*path);
     }},
    {"command",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       draft.spec.ready.kind = Probe::Kind::command;
       draft.spec.ready.command = read_command(reader, field);
     }},
    {"timeout",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.ready.timeout, read_duration(reader, field));
     }},
};

void read_probe(ConfigReader& reader, const Field& field, ServiceDraft& draft) {
  if (field.value.kind == YamlNode::Kind::scalar) {
    draft.ready = &field.value;
    return set(draft.spec.ready.kind, reader.choice(field, kProbe));
  }
  const auto before = draft.spec.ready.kind;
  read_map<ServiceDraft>(reader, field, kProbeKeys, draft);
  if (draft.spec.ready.kind != before) draft.ready = &field.value;
  if (!draft.spec.ready.path.empty() && !draft.spec.ready.command.empty()) {
    reader.fail(field, "expected either 'http' or 'command', found both");
  }
}

void read_signal(ConfigReader& reader, const Field& field, ServiceDraft& draft) {
  constexpr string_view kExpected = "the name of a signal, as TERM";
  auto name = reader.text(field, kExpected);
  if (!name) return;
  const string_view wanted = name->starts_with("SIG") ? string_view(*name).substr(3) : *name;
  for (int number = 1; number < NSIG; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    if (abbreviation == nullptr || wanted != abbreviation) continue;
    draft.spec.stop_signal = number;
    return;
  }
  reader.fail_expected(field, kExpected);
}

constexpr Key<ServiceDraft> kLogKeys[] = {
    {"max_size",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.log.max_bytes, read_size(reader, field, kSmallestLog));
     }},
    {"keep",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       if (const auto keep = reader.number(field, 0, kMostLogs)) {
         draft.spec.log.keep = static_cast<unsigned>(*keep);
       }
     }},
};

constexpr Key<ServiceDraft> kServiceKeys[] = {
    {"command",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       draft.has_command = true;
       draft.spec.command = read_command(reader, field);
     }},
    {"user", [](ConfigReader& reader, const Field& field,
                ServiceDraft& draft) { set(draft.spec.user, read_user(reader, field)); }},
    {"cwd", [](ConfigReader& reader, const Field& field,
               ServiceDraft& draft) { set(draft.spec.cwd, reader.path(field, kAbsolutePath)); }},
    {"env", [](ConfigReader& reader, const Field& field,
               ServiceDraft& draft) { draft.spec.env = read_env(reader, field); }},
    {"ports",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       reader.for_each_item(field, [&](const Field& item) { read_port(reader, item, draft); });
     }},
    {"sockets",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.handing, reader.choice(field, kHanding));
     }},
    {"ready", read_probe},
    {"restart",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.restart, reader.choice(field, kRestart));
     }},
    {"restart_delay",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.restart_delay, read_duration(reader, field));
     }},
    {"max_restart_delay",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.max_restart_delay, read_duration(reader, field));
     }},
    {"stop_signal", read_signal},
    {"stop_timeout",
     [](ConfigReader& reader, const Field& field, ServiceDraft& draft) {
       set(draft.spec.stop_timeout, read_duration(reader, field));
     }},
    {"log", [](ConfigReader& reader, const Field& field,
               ServiceDraft& draft) { read_map<ServiceDraft>(reader, field, kLogKeys, draft); }},
};

void finish(ConfigReader& reader, const Field& entry, ServiceDraft& draft) {
  ServiceSpec& spec = draft.spec;
  const bool is_map = entry.value.kind == YamlNode::Kind::map;
  if (!draft.has_command && (is_map || entry.value.kind == YamlNode::Kind::null)) {
    reader.fail(entry, "expected 'command', found none");
  }
  const bool has_tcp = std::ranges::any_of(
      spec.ports, [](const auto& port) { return port.key.protocol == Protocol::tcp; });
  if (draft.ready == nullptr) {
    spec.ready.kind = has_tcp ? Probe::Kind::accept : Probe::Kind::none;
  } else if (!has_tcp &&
             (spec.ready.kind == Probe::Kind::accept || spec.ready.kind == Probe::Kind::http)) {
    reader.fail(*draft.ready, "'ready': expected a TCP port in 'ports' to ask at, found none");
  }
}

constexpr Key<Config> kControlKeys[] = {
    {"reachable", [](ConfigReader& reader, const Field& field,
                     Config& config) { set(config.control_reachable, reader.boolean(field)); }},
};

}  // namespace

void read_services(ConfigReader& reader, const Field& field, Config& config) {
  reader.for_each_entry(field, [&](const Field& entry) {
    const std::string& name = entry.key.text;
    if (!contexts::is_valid_name(name)) {
      return reader.fail(entry.key,
                         "expected the name of a service (a to z, then up to 31 of a-z 0-9 _ -), "
                         "found " +
                             quote(name));
    }
    ServiceDraft draft;
    draft.spec.name = name;
    draft.config = &config;
    read_map<ServiceDraft>(reader, entry, kServiceKeys, draft);
    finish(reader, entry, draft);
    config.services.push_back(std::move(draft.spec));
  });
  std::ranges::sort(config.services, {}, &ServiceSpec::name);
}

void read_control(ConfigReader& reader, const Field& field, Config& config) {
  read_map<Config>(reader, field, kControlKeys, config);
}

void check_services(ConfigReader& reader, const Config& config) {
  if (config.control_reachable) return;
  for (const auto& service : config.services) {
    for (const auto& port : service.ports) {
      if (port.expose == Expose::all) continue;
      reader.fail(YamlNode{}, "service " + quote(service.name) + ": " + to_string(port.key) +
                                  " could be reached by nobody: with 'control: {reachable: false}' "
                                  "it needs 'expose: all'");
    }
  }
}

}  // namespace routerd
