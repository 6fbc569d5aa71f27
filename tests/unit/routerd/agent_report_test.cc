#include "routerd/agent_report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using contexts::Mechanism;
using nlohmann::json;
using routerd::Agent;
using routerd::Offers;

namespace {

const Offers kDynamicOnly = {{Mechanism::preload, {}, {"raw system calls"}},
                             {Mechanism::farm, "no mounts", {}},
                             {Mechanism::binfmt, "no binfmt_misc", {}},
                             {Mechanism::ptrace, "no ptrace", {}}};

contexts::ContextSpec children() {
  contexts::ContextSpec spec;
  spec.name = "user";
  spec.home = "/root";
  spec.share = {"/root/work"};
  spec.protect = {"/usr/lib/agent"};
  return spec;
}

/// A launcher script of a static executable.
Agent launcher() {
  auto profile = std::make_shared<routerd::AgentProfile>();
  profile->name = "agent";
  profile->title = "An Agent";
  profile->file = "/etc/airlock/profiles/agent.yaml";
  profile->pid_helpers = {{"ps", {"-p", "-o"}}};
  profile->servers = {{"/usr/bin/gopls", routerd::ServerAction::keep}};
  profile->block_env = {"AGENT_*"};
  Agent agent;
  agent.profile = profile;
  agent.program = {.path = "/usr/lib/agent/agent.js",
                   .script = "/usr/bin/agent",
                   .executable = "/usr/bin/node",
                   .interpreters = {"/usr/bin/node"}};
  agent.scripts = {{"/usr/lib/agent/agent.js", {1, 1}, false}};
  agent.runtimes = {{"/usr/lib/agent/native", {1, 2}, true}};
  agent.packages = {"/usr/lib/agent"};
  agent.copies = {"/root/.agent/copies"};
  agent.share = {"/root/.agent/snapshots", "/srv/outside-of-home"};
  return agent;
}

}  // namespace

TEST_CASE("a report tells what runs, what stays and what children see", "[routerd]") {
  const auto report = agent_report(launcher(), children(), {}, kDynamicOnly);
  CHECK(report["profile"] == json({{"name", "agent"},
                                   {"title", "An Agent"},
                                   {"file", "/etc/airlock/profiles/agent.yaml"}}));
  CHECK(report["runs"] == json::parse(R"([{"file": "/usr/bin/agent", "kind": "script"},
    {"file": "/usr/bin/node", "kind": "dynamic"}, {"file": "/usr/lib/agent/native", "kind": "static"}])"));
  const auto& stays = report["stays"];
  CHECK(stays["files"] == json({"/usr/lib/agent/agent.js", "/usr/lib/agent/native"}));
  CHECK(stays["packages"] == json({"/usr/lib/agent"}));
  CHECK(stays["copies"] == json({"/root/.agent/copies"}));
  CHECK(stays["pidHelpers"] == json({"ps -p -o"}));
  CHECK(stays["servers"] == json::parse(R"([{"program": "/usr/bin/gopls", "action": "keep"}])"));
  CHECK(report["children"]["share"] == json({"/root/work", "/root/.agent/snapshots"}));
  CHECK(report["children"]["protect"] == json({"/usr/lib/agent"}));
  CHECK(report["children"]["blockEnv"] == json({"AGENT_*"}));
  CHECK(report["warnings"].empty());
}

TEST_CASE("an agent with a static part is refused where nothing routes it", "[routerd]") {
  const auto refused = agent_report(launcher(), children(), {}, kDynamicOnly);
  CHECK(refused["mechanism"].is_null());
  CHECK_THAT(refused["reason"].get<std::string>(), Catch::Contains("no binfmt_misc"));
  auto offers = kDynamicOnly;
  offers[2].why_not.clear();
  const auto routed = agent_report(launcher(), children(), {}, offers);
  CHECK(routed["mechanism"] == "binfmt");
  CHECK(routed["reason"] == "");
}

TEST_CASE("a report warns of what children can change", "[routerd]") {
  auto spec = children();
  spec.protect.clear();
  spec.share = {"/root/.agent"};
  const auto report = agent_report(launcher(), spec, {}, kDynamicOnly);
  CHECK(report["stays"]["packages"].empty());
  CHECK(report["stays"]["copies"].empty());
  REQUIRE(report["warnings"].size() == 2);
  CHECK_THAT(report["warnings"][0].get<std::string>(), Catch::StartsWith("/usr/lib/agent "));
  CHECK_THAT(report["warnings"][1].get<std::string>(), Catch::Contains("/root/.agent/copies"));
}

TEST_CASE("a program that no profile knows is reported as such", "[routerd]") {
  Agent agent;
  agent.program = {.path = "/usr/bin/bash", .executable = "/usr/bin/bash"};
  const auto report = agent_report(agent, children(), {}, kDynamicOnly);
  CHECK(report["profile"].is_null());
  CHECK(report["mechanism"] == "preload");
  CHECK(report["notStopped"] == json({"raw system calls"}));
  CHECK(report["runs"] == json::parse(R"([{"file": "/usr/bin/bash", "kind": "dynamic"}])"));
  REQUIRE(report["warnings"].size() == 1);
  CHECK_THAT(report["warnings"][0].get<std::string>(), Catch::StartsWith("no profile"));
}
