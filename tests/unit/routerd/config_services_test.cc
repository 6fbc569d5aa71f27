#include <catch2/catch.hpp>
#include <string>

#include "routerd/config.h"

using namespace routerd;
using namespace std::chrono_literals;
using ports::Expose;
using ports::Protocol;
using services::Handing;
using services::Probe;
using services::Restart;

namespace {

using Lines = std::vector<std::string>;

Lines errors_of(const std::string& text) {
  const ConfigResult config = parse_config(text, "f.yaml");
  Lines lines;
  if (config) return lines;
  for (const ConfigError& error : config.error()) lines.push_back(error.render());
  return lines;
}

services::ServiceSpec service(const std::string& keys) {
  const auto config = parse_config("services: {web: {command: [a], " + keys + "}}", "f.yaml");
  if (!config) UNSCOPED_INFO(config.error().front().render());
  REQUIRE(config);
  REQUIRE(config->services.size() == 1);
  return config->services.front();
}

}  // namespace

TEST_CASE("a service needs a command and has defaults for the rest", "[routerd][services]") {
  const auto config = parse_config("services:\n  web:\n    command: [a, b c, '']\n", "f.yaml");
  REQUIRE(config);
  CHECK(config->control_reachable);
  const auto& spec = config->services.at(0);
  CHECK(spec.name == "web");
  CHECK(spec.command == std::vector<std::string>{"a", "b c", ""});
  CHECK(spec.user.empty());
  CHECK(spec.cwd == "/");
  CHECK(spec.handing == Handing::bind);
  CHECK(spec.ready.kind == Probe::Kind::none);
  CHECK(spec.restart == Restart::always);
  CHECK(spec.restart_delay == 100ms);
  CHECK(spec.max_restart_delay == 30s);
  CHECK(spec.stop_signal == SIGTERM);
  CHECK(spec.stop_timeout == 10s);
  CHECK(spec.log == services::LogLimits{10u << 20, 3});
}

TEST_CASE("every key of a service is read", "[routerd][services]") {
  const auto spec = service(
      "user: postgres, cwd: /srv, env: {A: b}, sockets: listen_fds, restart: on-failure, "
      "restart_delay: 5ms, max_restart_delay: 2m, stop_signal: SIGINT, stop_timeout: 1h, "
      "log: {max_size: 64K, keep: 0}, ready: {http: /health, timeout: 3s}, "
      "ports: [8080, {port: 53, protocol: udp, expose: all, name: dns}, {port: 9, expose: "
      "loopback}]");
  CHECK(spec.user == "postgres");
  CHECK(spec.cwd == "/srv");
  CHECK(spec.env == std::map<std::string, std::string>{{"A", "b"}});
  CHECK(spec.handing == Handing::listen_fds);
  CHECK(spec.restart == Restart::on_failure);
  CHECK(spec.restart_delay == 5ms);
  CHECK(spec.max_restart_delay == 2min);
  CHECK(spec.stop_signal == SIGINT);
  CHECK(spec.stop_timeout == 1h);
  CHECK(spec.log == services::LogLimits{64u << 10, 0});
  CHECK(spec.ready.kind == Probe::Kind::http);
  CHECK(spec.ready.path == "/health");
  CHECK(spec.ready.timeout == 3s);
  CHECK(spec.ports == std::vector<ports::PortSpec>{{{Protocol::tcp, 8080}, Expose::as_bound, ""},
                                                   {{Protocol::udp, 53}, Expose::all, "dns"},
                                                   {{Protocol::tcp, 9}, Expose::loopback, ""}});
}

TEST_CASE("how to find out that a service is ready", "[routerd][services]") {
  CHECK(service("ports: [80]").ready.kind == Probe::Kind::accept);
  CHECK(service("ports: [{port: 80, protocol: udp}]").ready.kind == Probe::Kind::none);
  CHECK(service("ports: [80], ready: none").ready.kind == Probe::Kind::none);
  CHECK(service("ports: [80], ready: {timeout: 1s}").ready.kind == Probe::Kind::accept);
  const auto by_command = service("ready: {command: [pg_isready, -q]}").ready;
  CHECK(by_command.kind == Probe::Kind::command);
  CHECK(by_command.command == std::vector<std::string>{"pg_isready", "-q"});
}

TEST_CASE("services are sorted by name, whatever their order in the file", "[routerd][services]") {
  const auto config = parse_config("services: {b: {command: [x]}, a: {command: [y]}}", "f.yaml");
  REQUIRE(config);
  CHECK(config->services.at(0).name == "a");
  CHECK(config->services.at(1).name == "b");
}

TEST_CASE("a port that cannot be held is an error at its place", "[routerd][services]") {
  const auto [ports, error] = GENERATE(table<const char*, const char*>({
      {"[0]", "3:12: 'ports': expected a number from 1 to 65535, found '0'"},
      {"[70000]", "3:12: 'ports': expected a number from 1 to 65535, found '70000'"},
      {"[-1]", "3:12: 'ports': expected a number from 1 to 65535, found '-1'"},
      {"[http]", "3:12: 'ports': expected a number from 1 to 65535, found 'http'"},
      {"[{port: 0}]", "3:19: 'port': expected a number from 1 to 65535, found '0'"},
      {"[{protocol: tcp}]", "3:12: 'ports': expected 'port' in each of 'ports', found none"},
      {"[80, 80]", "3:16: 'ports': tcp port 80 is service 'web''s already"},
      {"[{port: 80, protocol: sctp}]", "3:33: 'protocol': expected tcp or udp, found 'sctp'"},
      {"[{port: 80, expose: world}]", "3:31: 'expose': expected loopback or all, found 'world'"},
      {"[{port: 80, name: 'a:b'}]",
       "3:29: 'name': expected a name of up to 64 characters without ':', found 'a:b'"},
  }));
  CHECK(errors_of("services:\n web: {command: [x],\n   ports: " + std::string(ports) + "}\n") ==
        Lines{std::string("f.yaml:") + error});
}

TEST_CASE("two services cannot have one port, but TCP and UDP are two", "[routerd][services]") {
  CHECK(errors_of(
            "services:\n  a: {command: [x], ports: [80]}\n  b: {command: [x], ports: [80]}\n") ==
        Lines{"f.yaml:3:29: 'ports': tcp port 80 is service 'a''s already"});
  CHECK(errors_of("services: {a: {command: [x], ports: [80]}, "
                  "b: {command: [x], ports: [{port: 80, protocol: udp}]}}")
            .empty());
}

TEST_CASE("what a service cannot be is an error", "[routerd][services]") {
  const auto [keys, error] = GENERATE(table<const char*, const char*>({
      {"{}", "2:7: 'web': expected 'command', found none"},
      {"{command: jupyter lab}",
       "2:17: 'command': expected a list of words, as [program, argument], found a string"},
      {"{command: []}", "2:17: 'command': expected a program, found none"},
      {"{command: [x], restart: sometimes}",
       "2:31: 'restart': expected always, on-failure or never, found 'sometimes'"},
      {"{command: [x], stop_timeout: 5 minutes}",
       "2:36: 'stop_timeout': expected a duration such as 500ms, 10s or 2m, found '5 minutes'"},
      {"{command: [x], stop_signal: SIGNOPE}",
       "2:35: 'stop_signal': expected the name of a signal, as TERM, found 'SIGNOPE'"},
      {"{command: [x], log: {max_size: 1}}", "2:38: 'max_size': expected at least 4K, found '1'"},
      {"{command: [x], ready: accept}",
       "2:29: 'ready': expected a TCP port in 'ports' to ask at, found none"},
      {"{command: [x], ports: [1], ready: {http: index}}",
       "2:48: 'http': expected a path that starts with '/', without spaces, found 'index'"},
      {"{command: [x], env: {AIRLOCK_X: 1}}",
       "2:28: expected a variable of yours, found 'AIRLOCK_X': AIRLOCK_* are airlock's own"},
  }));
  CHECK(errors_of("services:\n web: " + std::string(keys) + "\n") ==
        Lines{std::string("f.yaml:") + error});
}

TEST_CASE("a service has a plain name", "[routerd][services]") {
  for (const char* name : {"Web", "9a", "a/b", "'a b'", "control", "''"}) {
    CHECK(errors_of("services: {" + std::string(name) + ": {command: [x]}}").size() == 1);
  }
}

TEST_CASE("what nobody could reach is an error", "[routerd][services]") {
  CHECK(errors_of("control: {reachable: false}\nservices: {a: {command: [x], ports: [80]}}") ==
        Lines{"f.yaml: service 'a': tcp port 80 could be reached by nobody: with "
              "'control: {reachable: false}' it needs 'expose: all'"});
  const auto config = parse_config(
      "control: {reachable: false}\n"
      "services: {a: {command: [x], ports: [{port: 80, expose: all}]}}",
      "f.yaml");
  REQUIRE(config);
  CHECK_FALSE(config->control_reachable);
}

TEST_CASE("errors of services never repeat a word of a command or a variable",
          "[routerd][services]") {
  for (const char* text :
       {"services: {a: {command: canary}}", "services: {a: {command: [x, [canary]]}}",
        "services: {a: {command: [\"canary\\0\"]}}",
        "services: {a: {command: [x], env: A=canary}}"}) {
    const Lines errors = errors_of(text);
    REQUIRE_FALSE(errors.empty());
    for (const auto& error : errors) CHECK_THAT(error, !Catch::Matchers::Contains("canary"));
  }
}
