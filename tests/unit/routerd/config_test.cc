#include "routerd/config.h"

#include <catch2/catch.hpp>
#include <string>

using namespace routerd;
using contexts::Isolation;
using contexts::RouteChild;
using contexts::RuleAction;

namespace {

Config parsed(std::string_view text) {
  const ConfigResult config = parse_config(text, "f.yaml");
  if (!config) {
    for (const ConfigError& error : config.error()) UNSCOPED_INFO(error.render());
  }
  REQUIRE(config);
  return *config;
}

std::vector<std::string> errors_of(std::string_view text) {
  const ConfigResult config = parse_config(text, "f.yaml");
  std::vector<std::string> lines;
  if (config) return lines;
  for (const ConfigError& error : config.error()) lines.push_back(error.render());
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("an empty file gives the predefined contexts", "[routerd]") {
  const std::string_view text = GENERATE("", "# nothing\n", "---\n", "{}", "contexts:\n",
                                         "contexts:\n  platform:\n  user:\n", "~");
  const Config config = parsed(text);
  REQUIRE(config.contexts.size() == 2);
  const ContextConfig& platform = config.contexts.at("platform");
  CHECK(platform.child_context == "user");
  CHECK(platform.route_child == RouteChild::automatic);
  const ContextConfig& user = config.contexts.at("user");
  CHECK(user.cwd == "/workspace");
  CHECK(user.child_context.empty());
  CHECK(user.route_child == RouteChild::never);
  CHECK(user.isolation == Isolation::secure);
  CHECK(user.user.empty());
  CHECK(user.rootfs == contexts::Rootfs::automatic);
  CHECK(user.fds == PassedFds::all);
  CHECK(user.tty == contexts::Terminals::automatic);
  CHECK(config.env_base == contexts::EnvPolicy::Base::clean);
  CHECK(config.require_tier == RequiredTier::isolated);
  CHECK(config.log_level == LogLevel::info);
  CHECK(config.runtime_dir == "/run/airlock");
  CHECK(config.secrets.empty());
}

TEST_CASE("the example file is valid and means what it says", "[routerd]") {
  const ConfigResult loaded = load_config(AIRLOCK_SOURCE_DIR "/docs/airlock.example.yaml");
  REQUIRE(loaded);
  CHECK(loaded->secrets == Lines{"an-example-of-a-secret"});
  const ContextConfig& platform = loaded->contexts.at("platform");
  CHECK(platform.route_child == RouteChild::automatic);
  REQUIRE(platform.routes.size() == 3);
  CHECK(platform.routes[0].program == "/opt/platform/bin/*");
  CHECK(platform.routes[0].action == RuleAction::here);
  CHECK(platform.routes[1].to == "database");
  CHECK(platform.routes[2].action == RuleAction::refuse);
  const ContextConfig& user = loaded->contexts.at("user");
  CHECK(user.env.at("ANSWER") == "42");
  CHECK(user.user == "developer");
  CHECK(user.rootfs == contexts::Rootfs::overlay);
  CHECK(user.share == Lines{"/opt/toolchains", "/srv/data"});
  CHECK(user.hide == Lines{"/srv/private"});
  CHECK(user.pass_env == Lines{"NPM_TOKEN", "CI_*"});
  CHECK(user.block_env == Lines{"CI_INTERNAL_*"});
  const ContextConfig& database = loaded->contexts.at("database");
  CHECK(database.env == user.env);  // by an alias
  CHECK(database.user == "999");
  CHECK(database.isolation == Isolation::none);
  CHECK(database.fds == PassedFds::stdio);
  CHECK(loaded->log_dir == "/var/log/airlock");
  CHECK(loaded->control_reachable);
  REQUIRE(loaded->services.size() == 3);
  CHECK(loaded->services[0].is_api);
  CHECK(loaded->services[1].ports.size() == 2);
  CHECK(loaded->services[1].ready.path == "/health");
  CHECK(loaded->services[2].handing == services::Handing::listen_fds);
  CHECK(loaded->api.tokens_file == "/etc/airlock/tokens.json");
  CHECK(loaded->api.hosts == Lines{"api.example"});
  CHECK(user.lifespan == Lifespan{24 * 3'600'000, 2 * 3'600'000});
  CHECK(user.api_socket == true);
  CHECK_FALSE(loaded->contexts.at("platform").api_socket);
  CHECK(loaded->api.origins == Lines{"https://app.example"});
}

TEST_CASE("the API is a service that may ask the daemon", "[routerd]") {
  CHECK(parsed("").services.empty());
  const Config config = parsed("api:");
  REQUIRE(config.services.size() == 1);
  const auto& service = config.services[0];
  CHECK(service.name == "airlock-api");
  CHECK(service.is_api);
  CHECK(service.handing == services::Handing::listen_fds);
  REQUIRE(service.ports.size() == 1);
  CHECK(service.ports[0].key.number == 8080);
  CHECK(service.ports[0].expose == ports::Expose::loopback);
  CHECK(parsed("api: {port: 81, expose: all}").services[0].ports[0].key.number == 81);
}

TEST_CASE("what cannot be served as the API is told", "[routerd]") {
  CHECK(errors_of("api: {tokens_file: /etc/tokens.json}").size() == 1);
  CHECK(errors_of("api: {tokens_file: tokens.json}").size() == 1);
  CHECK(errors_of("api: {port: 0}").size() == 1);
  CHECK(errors_of("api: {hosts: [a, 'b c']}").size() == 1);
  CHECK(errors_of("api: {port: 99}\nservices: {web: {command: [x], ports: [99]}}").size() == 1);
  CHECK(errors_of("api:\nservices: {airlock-api: {command: [x]}}").size() == 1);
}

TEST_CASE("predefined contexts are extended, not replaced", "[routerd]") {
  const Config config = parsed("contexts: {platform: {env: {A: 1}}, user: {cwd: /x}}");
  CHECK(config.contexts.at("platform").child_context == "user");
  CHECK(config.contexts.at("platform").route_child == RouteChild::automatic);
  CHECK(config.contexts.at("platform").env.at("A") == "1");
  CHECK(config.contexts.at("user").cwd == "/x");
}

TEST_CASE("route_child follows from child_context unless it is given", "[routerd]") {
  const auto route_child = [](const std::string& keys) {
    return parsed("contexts: {a: {" + keys + "}, b: }").contexts.at("a").route_child;
  };
  CHECK(route_child("") == RouteChild::never);
  CHECK(route_child("child_context: b") == RouteChild::always);
  CHECK(route_child("child_context: b, route_child: auto") == RouteChild::automatic);
  CHECK(route_child("route_child: never, child_context: b") == RouteChild::never);
  CHECK(route_child("child_context: b, route_child: true") == RouteChild::always);
  CHECK(route_child("child_context: b, route_child: false") == RouteChild::never);
  const Config config = parsed("contexts: {platform: {child_context: user}}");
  CHECK(config.contexts.at("platform").route_child == RouteChild::always);
}

TEST_CASE("scalars are taken as they are written", "[routerd]") {
  const Config config = parsed(
      "contexts:\n  a:\n    env:\n      A: 007\n      B: true\n      C: 1.50\n      D: \"\"\n"
      "      E: |\n        x\n         y\n      F: \xc3\xa4\xff\n");
  const auto& env = config.contexts.at("a").env;
  CHECK(env.at("A") == "007");
  CHECK(env.at("B") == "true");
  CHECK(env.at("C") == "1.50");
  CHECK(env.at("D").empty());
  CHECK(env.at("E") == "x\n y\n");
  CHECK(env.at("F") == "\xc3\xa4\xff");
}

TEST_CASE("paths lose doubled and last slashes", "[routerd]") {
  const Config config = parsed("{runtime_dir: //run//a/, contexts: {a: {share: [/x/], cwd: /}}}");
  CHECK(config.runtime_dir == "/run/a");
  CHECK(config.contexts.at("a").share == Lines{"/x"});
  CHECK(config.contexts.at("a").cwd == "/");
}

TEST_CASE("one wrong thing is one error at its place", "[routerd]") {
  struct Case {
    const char* text;
    const char* error;
  };
  const auto [text, error] = GENERATE(values<Case>({
      {"[a]", "1:1: expected a map of settings, found a list"},
      {"just text", "1:1: expected a map of settings, found a string"},
      {"a: b: c", "1:5: invalid YAML: illegal map value"},
      {"log_level: info\nlog_level: warn", "2:1: duplicate key 'log_level', first on line 1"},
      {"log_lvl: info", "1:1: unknown key 'log_lvl'; did you mean 'log_level'?"},
      {"colour: red",
       "1:1: unknown key 'colour'; expected contexts, secrets, env_base, "
       "require_tier, log_level, runtime_dir, log_dir, services, control, api or audit"},
      {"[a]: b", "1:1: expected a name as key, found a list"},
      {"log_level: loud",
       "1:12: 'log_level': expected trace, debug, info, warn, error or off, "
       "found 'loud'"},
      {"log_level:",
       "1:1: 'log_level': expected trace, debug, info, warn, error or off, found "
       "nothing"},
      {"require_tier: isolate",
       "1:15: 'require_tier': expected isolated, namespaces, userns, uids, "
       "landlock or none, found 'isolate'; did you mean 'isolated'?"},
      {"env_base: [clean]", "1:11: 'env_base': expected clean or inherit, found a list"},
      {"runtime_dir: run",
       "1:14: 'runtime_dir': expected an absolute path without '.' and '..', "
       "found 'run'"},
      {"runtime_dir: /a/../b",
       "1:14: 'runtime_dir': expected an absolute path without '.' and "
       "'..', found '/a/../b'"},
      {"runtime_dir: \"/a\\0b\"",
       "1:14: 'runtime_dir': expected an absolute path without '.' and "
       "'..', found a string with a NUL byte"},
      {"runtime_dir: ''",
       "1:14: 'runtime_dir': expected an absolute path without '.' and '..', "
       "found an empty string"},
      {"contexts: [a]", "1:11: 'contexts': expected a map, found a list"},
      {"contexts: {Web: }",
       "1:12: expected a context name (a to z, then up to 31 of a-z 0-9 _ -), "
       "found 'Web'"},
      {"contexts: {control: }", "1:12: 'control' is reserved for airlock's control plane"},
      {"secrets: {a: b}", "1:10: 'secrets': expected a list, found a map"},
      {"secrets: hunter2hunter2", "1:10: 'secrets': expected a list, found a string"},
      {"secrets: [hunter2]",
       "1:11: 'secrets': expected at least 8 bytes, found 7 (so short a "
       "secret would be found by chance)"},
      {"a: 1\n--- \nb: 2", "2:1: invalid YAML: expected one YAML document, found a second one"},
      {"log_level: !!str info", "1:12: invalid YAML: YAML tags are not supported"},
      {"log_level: *x", "1:12: invalid YAML: the referenced anchor is not defined"},
      {"log_level: &x [*x]", "1:16: invalid YAML: found an alias inside what it stands for"},
      {"log_level: i\x04nfo", "1:13: expected text, found control character 4"},
  }));
  CHECK(errors_of(text) == Lines{std::string("f.yaml:") + error});
}

TEST_CASE("one wrong thing in a context is one error at its place", "[routerd]") {
  struct Case {
    const char* keys;
    const char* error;
  };
  const auto [keys, error] = GENERATE(values<Case>({
      {"cdw: /x", "3: unknown key 'cdw'; did you mean 'cwd'?"},
      {"childContext: user", "3: unknown key 'childContext'; did you mean 'child_context'?"},
      {"cwd: x", "8: 'cwd': expected an absolute path without '.' and '..', found 'x'"},
      {"env: FOO=secret", "8: 'env': expected a map, found a string"},
      {"env: {A: [secret]}", "12: 'A': expected a string (\"\" for an empty one), found a list"},
      {"env: {A: }", "9: 'A': expected a string (\"\" for an empty one), found nothing"},
      {"env: {A=secret: 1}",
       "9: expected the name of a variable, found an empty one or a '=' or NUL"},
      {"env: {AIRLOCK_X: 1}",
       "9: expected a variable of yours, found 'AIRLOCK_X': AIRLOCK_* are "
       "airlock's own"},
      {"env: {A: \"x\\0\"}",
       "12: 'A': expected a string (\"\" for an empty one), found a string "
       "with a NUL byte"},
      {"user: 'a b'", "9: 'user': expected a user name or a uid, found 'a b'"},
      {"user: 4294967295", "9: 'user': expected a number from 0 to 4294967294, found '4294967295'"},
      {"child_context: usr", "18: unknown context 'usr'; did you mean 'user'?"},
      {"child_context: elsewhere", "18: unknown context 'elsewhere'; expected a, platform or user"},
      {"child_context: a", "18: context 'a' routes to itself"},
      {"route_child: always", "16: 'route_child': expected a 'child_context' with it, found none"},
      {"route_child: sometimes",
       "16: 'route_child': expected auto, always, never, true or false, "
       "found 'sometimes'"},
      {"isolation: secur",
       "14: 'isolation': expected secure, strict or none, found 'secur'; did "
       "you mean 'secure'?"},
      {"rootfs: ro", "11: 'rootfs': expected auto, overlay or shared, found 'ro'"},
      {"share: [x]", "11: 'share': expected an absolute path without '.' and '..', found 'x'"},
      {"share: /x", "10: 'share': expected a list, found a string"},
      {"hide: [/]", "10: 'hide': expected a file or folder of the root, found '/'"},
      {"pass_env: [A=b]",
       "14: 'pass_env': expected the name of a variable or a glob, found a '=' in it"},
      {"block_env: [[A]]",
       "15: 'block_env': expected the name of a variable or a glob, found a list"},
      {"fds: none", "8: 'fds': expected all or stdio, found 'none'"},
      {"tty: raw", "8: 'tty': expected auto, relay or share, found 'raw'"},
      {"persistent: yes", "15: 'persistent': expected true or false, found 'yes'"},
      {"limits: {pids: 1}", "18: 'pids': expected a number from 8 to 4194304, found '1'"},
      {"limits: {memory: 1M}", "20: 'memory': expected at least 8192K, found '1M'"},
      {"limits: {cpu: many}",
       "17: 'cpu': expected CPUs, from 0.01 to 10000, such as 0.5 or 2, found 'many'"},
      {"limits: {cpu: 1e3}",
       "17: 'cpu': expected CPUs, from 0.01 to 10000, such as 0.5 or 2, found '1e3'"},
      {"limits: {disk: 1G}",
       "12: unknown key 'disk'; expected pids, memory, cpu, open_files, tmpfs or exec_time"},
      {"allow_root_from: [who]", "21: unknown context 'who'; expected a, platform or user"},
      {"routes: [{program: bash, action: here}]",
       "22: 'program': expected an absolute path or a glob of one, without '.' and '..', found "
       "'bash'"},
      {"routes: [{action: here}]", "12: 'routes': expected 'program' in each rule, found none"},
      {"routes: [{program: /x}]",
       "12: 'routes': expected 'action' in each rule (here, route or refuse), found none"},
      {"routes: [{program: /x, action: route}]",
       "12: expected 'to' in the rule or 'child_context' in the context, found neither"},
      {"routes: [{program: /x, action: here, to: user}]",
       "44: expected 'to' with action 'route' only, found it with 'here'"},
      {"routes: [{program: /x, action: route, to: nowhere}]",
       "45: unknown context 'nowhere'; expected a, platform or user"},
      {"routes: [/x]", "12: 'routes': expected a map, found a string"},
  }));
  CHECK(errors_of("contexts:\n a:\n  " + std::string(keys)) ==
        Lines{std::string("f.yaml:3:") + error});
}

TEST_CASE("all errors are reported in the order of the file", "[routerd]") {
  CHECK(
      errors_of("log_level: x\ncontexts:\n  user: {child_context: nope, isolation: high}\n"
                "  Bad: {}\nnonsense: 1\n") ==
      Lines{"f.yaml:1:12: 'log_level': expected trace, debug, info, warn, error or off, found 'x'",
            "f.yaml:3:25: unknown context 'nope'; expected platform or user",
            "f.yaml:3:42: 'isolation': expected secure, strict or none, found 'high'",
            // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one string
            "f.yaml:4:3: expected a context name (a to z, then up to 31 of a-z 0-9 _ -), found "
            "'Bad'",
            "f.yaml:5:1: unknown key 'nonsense'; expected contexts, secrets, env_base, "
            "require_tier, log_level, runtime_dir, log_dir, services, control, api or audit"});
}

TEST_CASE("contexts that route in a circle are an error", "[routerd]") {
  CHECK(errors_of("contexts:\n  user:\n    child_context: platform\n") ==
        Lines{"f.yaml:3:20: contexts route in a circle: platform -> user -> platform"});
  CHECK(errors_of("contexts:\n  a: {child_context: b}\n  b: {child_context: c}\n"
                  "  c: {routes: [{program: /x, action: route, to: a}]}\n") ==
        Lines{"f.yaml:4:49: contexts route in a circle: a -> b -> c -> a"});
  CHECK(errors_of("contexts: {a: {child_context: b}, b: {child_context: c}, c: , "
                  "d: {child_context: c}}")
            .empty());
}

TEST_CASE("a path may not be both shared and hidden", "[routerd]") {
  CHECK(errors_of("contexts: {a: {share: [/x/], hide: [/x]}}") ==
        Lines{"f.yaml:1:12: 'a': found '/x' in both 'share' and 'hide'"});
}

TEST_CASE("errors never repeat a secret or the value of a variable", "[routerd]") {
  for (const char* text :
       {"secrets: canary-1", "secrets: {x: canary-1}", "secrets: [[canary-1]]",
        "secrets: [\"canary-1\\0\"]", "secrets: [canary]", "secrets:\n- - canary",
        "contexts: {a: {env: A=canary}}", "contexts: {a: {env: {A: [canary]}}}",
        "contexts: {a: {env: [A=canary]}}", "contexts: {a: {env: {A=canary: }}}",
        "contexts: {a: {pass_env: [A=canary]}}"}) {
    const Lines errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], !Catch::Matchers::Contains("canary"));
  }
}

TEST_CASE("errors are one printable line", "[routerd]") {
  CHECK(errors_of("runtime_dir: \"a\\n\\e[31m\"") ==
        Lines{"f.yaml:1:14: 'runtime_dir': expected an absolute path without '.' and '..', found "
              "'a\\x0a\\x1b[31m'"});
  CHECK_THAT(errors_of("log_level: " + std::string(500, 'x'))[0],
             Catch::Matchers::EndsWith("found '" + std::string(60, 'x') + "...'"));
}

TEST_CASE("hostile files are refused", "[routerd]") {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'l'; ++c) {
    const std::string alias = std::string(" *") + static_cast<char>(c - 1) + " ";
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += (i > 0 ? "," : "") + alias;
    bomb += "]\n";
  }
  CHECK(errors_of(bomb).size() == 1);
  CHECK(errors_of(std::string(100'000, '[')) ==
        Lines{"f.yaml:1:17: invalid YAML: nested deeper than 32 levels"});
  CHECK(errors_of(std::string(kMaxConfigSize + 1, '#')) == Lines{"f.yaml: larger than 1 MiB"});
  CHECK(errors_of(std::string("log_level: info\0", 16)) ==
        Lines{"f.yaml:1:16: expected text, found control character 0"});
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  const Lines errors = errors_of(keys);
  CHECK(errors.size() == 101);
  CHECK(errors.back() == "f.yaml: 900 more errors");
  std::string chain = "contexts:\n";
  for (int i = 0; i < 5000; ++i) {
    chain += " c" + std::to_string(i) + ": {child_context: c" + std::to_string(i + 1) + "}\n";
  }
  CHECK(errors_of(chain) == Lines{"f.yaml: expected at most 1000 contexts, found 5002"});
}

TEST_CASE("a file that cannot be read is one error with the reason", "[routerd]") {
  const auto error = [](const std::string& path) {
    const ConfigResult config = load_config(path);
    return config ? std::string() : config.error().front().render();
  };
  CHECK(error("/nonexistent/a.yaml") ==
        "/nonexistent/a.yaml: cannot read: No such file or directory");
  CHECK(error("/") == "/: cannot read: Is a directory");
  CHECK(error("/dev/zero") == "/dev/zero: larger than 1 MiB");
  CHECK(error("/dev/null").empty());
}

TEST_CASE("how long a context lives, and whether it has a door", "[routerd]") {
  const auto user = [](const std::string& keys) {
    return parsed("contexts: {user: {" + keys + "}}").contexts.at("user");
  };
  CHECK(user("cwd: /w").lifespan == Lifespan{});
  CHECK(user("ttl: 90s").lifespan == Lifespan{90'000, 0});
  CHECK(user("idle_timeout: 5m").lifespan == Lifespan{0, 300'000});
  CHECK(user("api_socket: false").api_socket == false);
  for (const char* bad : {"ttl: 0s", "ttl: 9000h", "ttl: soon", "idle_timeout: -1s",
                          "api_socket: perhaps", "api_socket: 1"}) {
    CAPTURE(bad);
    CHECK(errors_of("contexts: {user: {" + std::string(bad) + "}}").size() == 1);
  }
}
