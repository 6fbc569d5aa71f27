#include "routerd/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using routerd::AgentProfile;
using routerd::parse_profile;
using Strings = std::vector<std::string>;

namespace {

const std::string kLeast = "packages: ['*/agent']\nruntimes: [agent]\n";

AgentProfile parsed(const std::string& text) {
  auto profile = parse_profile(text, "agent", "agent.yaml");
  if (!profile) FAIL(profile.error().front().render());
  return *profile;
}

/// All errors, one line each.
std::string errors_of(const std::string& text) {
  const auto profile = parse_profile(text, "agent", "agent.yaml");
  std::string lines;
  if (profile) return "";
  for (const auto& error : profile.error()) lines += error.render() + "\n";
  return lines;
}

}  // namespace

TEST_CASE("a profile says all there is to say of an agent", "[routerd]") {
  const auto profile = parsed(R"(
title: An agent
commands: [agent, agentctl]
packages: ["*/node_modules/agent", ~/.local/agent, /opt/agent]
runtimes: [bin/agent, ../agent-*/agent]
scripts: [cli.js]
copies: [$AGENT_HOME, ~/.agent/copies]
share: [~/.agent/snapshots]
hide: [/srv/agent, $AGENT_HOME/secrets]
pid_helpers: [ps -p, pgrep  -P -x]
servers:
  - { program: /usr/bin/gopls, action: keep }
  - { program: ~/lsp/*.js, action: route }
env:
  pass: [AGENT_*]
  block: [AGENT_SESSION]
)");
  CHECK(profile.name == "agent");
  CHECK(profile.title == "An agent");
  CHECK(profile.file == "agent.yaml");
  CHECK(profile.commands == Strings{"agent", "agentctl"});
  CHECK(profile.packages == Strings{"*/node_modules/agent", "~/.local/agent", "/opt/agent"});
  CHECK(profile.runtimes == Strings{"bin/agent", "../agent-*/agent"});
  CHECK(profile.scripts == Strings{"cli.js"});
  CHECK(profile.copies == Strings{"$AGENT_HOME", "~/.agent/copies"});
  CHECK(profile.share == Strings{"~/.agent/snapshots"});
  CHECK(profile.hide == Strings{"/srv/agent", "$AGENT_HOME/secrets"});
  REQUIRE(profile.pid_helpers.size() == 2);
  CHECK(profile.pid_helpers[0].program == "ps");
  CHECK(profile.pid_helpers[1].program == "pgrep");
  CHECK(profile.pid_helpers[1].options == Strings{"-P", "-x"});
  REQUIRE(profile.servers.size() == 2);
  CHECK(profile.servers[0].program == "/usr/bin/gopls");
  CHECK(profile.servers[0].action == routerd::ServerAction::keep);
  CHECK(profile.servers[1].action == routerd::ServerAction::route);
  CHECK(profile.pass_env == Strings{"AGENT_*"});
  CHECK(profile.block_env == Strings{"AGENT_SESSION"});
}

TEST_CASE("a profile needs to say how the agent is known, and what it is", "[routerd]") {
  CHECK(errors_of(kLeast).empty());
  CHECK(parsed(kLeast).title == "agent");
  CHECK(errors_of("packages: ['*/a']\nscripts: [x]\n").empty());
  CHECK_THAT(errors_of(""), Catch::StartsWith("agent.yaml: expected 'packages'"));
  CHECK_THAT(errors_of("packages: ['*/a']\n"),
             Catch::StartsWith("agent.yaml: expected 'runtimes' or 'scripts'"));
}

TEST_CASE("errors of profiles name line, column and what was expected", "[routerd]") {
  struct Row {
    const char* text;
    const char* error;
  };
  const auto row = GENERATE(values<Row>({
      {"comands: [x]\n", "agent.yaml:3:1: unknown key 'comands'; did you mean 'commands'?\n"},
      {"commands: [a/b]\n", "agent.yaml:3:12: 'commands': expected the name of a program, found"},
      {"commands: x\n", "agent.yaml:3:11: 'commands': expected a list, found a string\n"},
      {"scripts: [/abs]\n", "agent.yaml:3:11: 'scripts': expected a path or glob relative to"},
      {"scripts: [a/../b]\n", "agent.yaml:3:11: 'scripts': expected"},
      {"scripts: [..]\n", "agent.yaml:3:11: 'scripts': expected"},
      {"share: [snapshots]\n", "agent.yaml:3:9: 'share': expected an absolute path without"},
      {"share: [~/a/../b]\n", "agent.yaml:3:9: 'share': expected"},
      {"share: ['~']\n", "agent.yaml:3:9: 'share': expected"},
      {"hide: [/]\n", "agent.yaml:3:8: 'hide': expected"},
      {"copies: [$]\n", "agent.yaml:3:10: 'copies': expected"},
      {"copies: [$A-B/x]\n", "agent.yaml:3:10: 'copies': expected"},
      {"pid_helpers: [ps]\n", "agent.yaml:3:15: 'pid_helpers': expected a program and at least"},
      {"pid_helpers: [/bin/ps -p]\n", "agent.yaml:3:15: 'pid_helpers': expected"},
      {"pid_helpers: [ps p]\n", "agent.yaml:3:15: 'pid_helpers': expected"},
      {"servers: [/usr/bin/x]\n", "agent.yaml:3:11: 'servers': expected a map, found a string\n"},
      {"servers: [{action: keep}]\n", "expected 'program' in each server, found none"},
      {"servers: [{program: /x}]\n", "expected 'action' in each server (keep or route)"},
      {"servers: [{program: gopls, action: keep}]\n", "'program': expected an absolute path or"},
      {"servers: [{program: /x, action: kep}]\n", "found 'kep'; did you mean 'keep'?"},
      {"env: [A]\n", "agent.yaml:3:6: 'env': expected a map, found a list\n"},
      {"env: {pass: [A=b]}\n", "'pass': expected the name of a variable or a glob, found 'A=b'"},
      {"title: [\n", "agent.yaml:"},
  }));
  CAPTURE(row.text);
  CHECK_THAT(errors_of(kLeast + row.text), Catch::Contains(row.error));
}

TEST_CASE("packages are patterns of whole paths, never bare names", "[routerd]") {
  for (const auto* pattern : {"agent", "*", "**", "*/", "./agent", "~", "*/a/../b", "*agent"}) {
    CAPTURE(pattern);
    CHECK_THAT(errors_of("packages: ['" + std::string(pattern) + "']\nruntimes: [x]\n"),
               Catch::Contains("'packages': expected a folder"));
  }
}

TEST_CASE("all errors of a profile are told at once, in order", "[routerd]") {
  const auto errors = errors_of("env: 1\nshare: [x]\npackages: [y]\n");
  CHECK_THAT(errors, Catch::Contains("agent.yaml:1:") && Catch::Contains("agent.yaml:2:") &&
                         Catch::Contains("agent.yaml:3:"));
  CHECK(errors.find("agent.yaml:2:") < errors.find("agent.yaml:3:"));
}

TEST_CASE("a profile is called as its file", "[routerd]") {
  for (const auto* name : {"a", "claude", "my-agent_2"}) CHECK(routerd::is_profile_name(name));
  for (const auto* name : {"", "A", "1a", "a b", "a/b", "-a", "a.b"}) {
    CAPTURE(name);
    CHECK_FALSE(routerd::is_profile_name(name));
    CHECK_FALSE(parse_profile(kLeast, name, "x.yaml"));
  }
  CHECK_FALSE(routerd::is_profile_name(std::string(33, 'a')));
}

TEST_CASE("a profile is read from a file that nobody else can write", "[routerd][root]") {
  const support::TempDir folder;
  const auto path = folder / "agent.yaml";
  const auto error_of_file = [&path] {
    const auto profile = routerd::load_profile(path);
    return profile ? "" : profile.error().front().render();
  };
  CHECK_THAT(error_of_file(), Catch::Contains("cannot read"));
  REQUIRE(base::write_file(path, kLeast, 0600));
  CHECK(error_of_file().empty());
  CHECK(routerd::load_profile(path)->name == "agent");
  REQUIRE(::chmod(path.c_str(), 0646) == 0);
  CHECK_THAT(error_of_file(), Catch::Contains("anybody can write it"));
  if (support::lacks_root()) return;
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  REQUIRE(::chown(path.c_str(), 1000, 1000) == 0);
  CHECK_THAT(error_of_file(), Catch::Contains("belongs to another user"));
}
