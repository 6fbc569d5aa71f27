#include "routerd/farm_plan.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/context_client.h"
#include "tests/support/profiles.h"
#include "tests/support/temp_dir.h"

using routerd::FarmPlan;
using Strings = std::vector<std::string>;

namespace {

class Machine {
 public:
  Machine() {
    for (const char* folder : {"bin", "work/bin", "home/bin", "lib"}) {
      std::filesystem::create_directories(folder_ / folder);
    }
  }
  std::string add(const std::string& path, const std::string& text) {
    if (!base::write_file(folder_ / path, text, 0755)) FAIL("write " << path);
    return at(path);
  }
  std::string add_program(const std::string& path, const std::string& program) {
    std::filesystem::copy_file(program, folder_ / path);
    return at(path);
  }
  void add_link(const std::string& path, const std::string& target) {
    std::filesystem::create_symlink(target, folder_ / path);
  }
  std::string at(const std::string& path) const {
    return std::filesystem::canonical(folder_.path()).string() + "/" + path;
  }

  FarmPlan plan(const std::string& name, contexts::ContextSpec spec = {}) const {
    const std::string path = at("bin") + ":" + at("work/bin") + ":" + at("home/bin") + ":/usr/bin";
    auto program = routerd::inspect_program(name, path, at("work"));
    if (!program) FAIL(program.error().message());
    const auto agent = routerd::examine_agent(*program, {name}, at("work"),
                                              support::shipped_profiles(), {"HOME=" + at("home")});
    return routerd::plan_farm(agent, {spec, path, at("home"), at("work")});
  }

 private:
  support::TempDir folder_;
};

bool has(const Strings& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

TEST_CASE("the system's bin folders are resolved and named once", "[routerd]") {
  const auto folders = routerd::system_bin_folders();
  CHECK(has(folders, "/usr/bin"));
  for (const auto& folder : folders) {
    CHECK(std::filesystem::canonical(folder) == folder);
    CHECK(std::count(folders.begin(), folders.end(), folder) == 1);
  }
}

TEST_CASE("PATH is covered but for where the agent writes itself", "[routerd]") {
  Machine machine;
  machine.add_program("dynamic", support::probe_program());
  machine.add_program("static", support::programs_folder() + "/airlock-init");
  const auto dynamic = machine.plan(machine.at("dynamic"));
  CHECK(has(dynamic.covered, machine.at("bin")));
  CHECK_FALSE(has(dynamic.covered, machine.at("work/bin")));
  CHECK_FALSE(has(dynamic.covered, machine.at("home/bin")));
  const auto of_static = machine.plan(machine.at("static"));
  CHECK(has(of_static.covered, machine.at("home/bin")));
  CHECK_FALSE(has(of_static.covered, machine.at("work/bin")));
}

TEST_CASE("an agent may execute its own files, and ld.so only if it needs it", "[routerd]") {
  Machine machine;
  machine.add_program("dynamic", support::probe_program());
  machine.add_program("static", support::programs_folder() + "/airlock-init");
  const auto dynamic = machine.plan(machine.at("dynamic"));
  CHECK(has(dynamic.executable, machine.at("dynamic")));
  CHECK(dynamic.executable.size() == 2);
  CHECK(machine.plan(machine.at("static")).executable == Strings{machine.at("static")});
  CHECK(dynamic.kept.empty());
}

TEST_CASE("a script in a covered folder is kept, and the link that leads to it", "[routerd]") {
  Machine machine;
  const auto script = machine.add("lib/agent.py", "#!/usr/bin/env python3\n");
  machine.add_link("bin/agent", "../lib/agent.py");
  const auto by_link = machine.plan("agent");
  CHECK(by_link.kept.empty());
  REQUIRE(by_link.kept_links.size() == 1);
  CHECK(by_link.kept_links.front() == std::pair(machine.at("bin"), std::string("agent")));
  CHECK(has(by_link.executable, "/usr/bin/env"));
  machine.add("bin/other", "#!/bin/sh\n");
  const auto itself = machine.plan("other");
  CHECK(has(itself.kept, machine.at("bin/other")));
  CHECK(itself.kept_links.empty());
}

TEST_CASE("an interpreter's folder is covered, that of a static program is not", "[routerd]") {
  Machine machine;
  std::filesystem::create_directories(machine.at("opt/bin"));
  machine.add_program("opt/bin/runtime", support::probe_program());
  machine.add_program("opt/bin/static", support::programs_folder() + "/airlock-init");
  CHECK(has(machine.plan(machine.at("opt/bin/runtime")).covered, machine.at("opt/bin")));
  CHECK_FALSE(has(machine.plan(machine.at("opt/bin/static")).covered, machine.at("opt/bin")));
}

TEST_CASE("what the context's rules let run here may be executed", "[routerd]") {
  Machine machine;
  machine.add_program("dynamic", support::probe_program());
  machine.add_program("lib/one", support::probe_program());
  machine.add_program("lib/two", support::probe_program());
  contexts::ContextSpec spec;
  SECTION("by name") {
    spec.routes = {{machine.at("lib/one"), contexts::RuleAction::here, {}}};
    const auto plan = machine.plan(machine.at("dynamic"), spec);
    CHECK(has(plan.executable, machine.at("lib/one")));
    CHECK_FALSE(has(plan.executable, machine.at("lib/two")));
  }
  SECTION("by pattern") {
    spec.routes = {{machine.at("lib") + "/t*", contexts::RuleAction::here, {}}};
    const auto plan = machine.plan(machine.at("dynamic"), spec);
    CHECK_FALSE(has(plan.executable, machine.at("lib/one")));
    CHECK(has(plan.executable, machine.at("lib/two")));
  }
  SECTION("no other rule") {
    spec.routes = {{machine.at("lib/one"), contexts::RuleAction::route, {}}};
    CHECK_FALSE(has(machine.plan(machine.at("dynamic"), spec).executable, machine.at("lib/one")));
  }
}
