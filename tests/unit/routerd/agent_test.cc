#include "routerd/agent.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/context_client.h"
#include "tests/support/profiles.h"
#include "tests/support/temp_dir.h"

using contexts::ContextSpec;
using routerd::Agent;
using routerd::examine_agent;
using routerd::is_out_of_reach;
using Strings = std::vector<std::string>;

namespace {

/// A machine with agents installed: programs in the places where npm puts them.
class Machine {
 public:
  std::string add(const std::string& path, const std::string& text = "#!/bin/sh\n") {
    prepare(path);
    if (!base::write_file(folder_ / path, text, 0755)) FAIL("write " << path);
    return resolved(path);
  }
  std::string add_elf(const std::string& path, const std::string& program) {
    prepare(path);
    std::filesystem::copy_file(program, folder_ / path);
    return resolved(path);
  }
  void add_link(const std::string& path, const std::string& target) {
    prepare(path);
    std::filesystem::create_symlink(target, folder_ / path);
  }
  std::string resolved(const std::string& path) const {
    return std::filesystem::canonical(folder_ / path).string();
  }
  std::string home() const { return folder_ / "home"; }

  Agent examine(const Strings& argv, const Strings& env = {}) const {
    auto program =
        routerd::inspect_program(argv.front(), folder_ / "bin:/usr/bin:/bin", folder_.path());
    if (!program) FAIL(program.error().message());
    contexts::Environment all = env;
    all.push_back("HOME=" + home());
    return examine_agent(*program, argv, folder_.path(), profiles_, all);
  }
  const routerd::Profiles& profiles() const { return profiles_; }
  const std::string& path() const { return folder_.path(); }

 private:
  void prepare(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ / path).parent_path());
  }
  support::TempDir folder_;
  routerd::Profiles profiles_ = support::shipped_profiles();
};

std::string name_of(const Agent& agent) { return agent.profile ? agent.profile->name : ""; }

Strings paths(const std::vector<routerd::AgentFile>& files) {
  Strings all;
  for (const auto& file : files) all.push_back(file.path);
  std::sort(all.begin(), all.end());
  return all;
}

const auto kSafe = [](const std::string&) { return true; };
const auto kUnsafe = [](const std::string&) { return false; };

const std::string kStatic = support::programs_folder() + "/airlock-stub";

}  // namespace

TEST_CASE("a self-contained agent is its executable, by all its names", "[routerd]") {
  Machine machine;
  const auto elf =
      machine.add_elf("node_modules/@anthropic-ai/claude-code-linux-x64/claude", "/bin/true");
  std::filesystem::create_directories(machine.path() +
                                      "/node_modules/@anthropic-ai/claude-code/bin");
  std::filesystem::create_hard_link(
      elf, machine.path() + "/node_modules/@anthropic-ai/claude-code/bin/claude.exe");
  machine.add_link("bin/claude", "../node_modules/@anthropic-ai/claude-code/bin/claude.exe");
  const auto agent = machine.examine({"claude"});
  CHECK(name_of(agent) == "claude");
  REQUIRE(agent.runtimes.size() == 1);
  CHECK(agent.runtimes[0].id == routerd::file_id(elf));
  CHECK(agent.scripts.empty());
  CHECK_FALSE(agent.has_static_part());
  CHECK(agent.share.front() == machine.home() + "/.claude/shell-snapshots");
  // One file, but whoever can write it by either name can change it.
  CHECK(agent.packages == Strings{machine.resolved("node_modules/@anthropic-ai/claude-code"),
                                  machine.resolved("node_modules/@anthropic-ai/"
                                                   "claude-code-linux-x64")});
}

TEST_CASE("a launcher script's executable belongs to the agent", "[routerd]") {
  Machine machine;
  const auto script = machine.add("node_modules/@openai/codex/bin/codex.js");
  const auto elf =
      machine.add_elf("node_modules/@openai/codex-linux-x64/vendor/t/bin/codex", kStatic);
  machine.add_elf("node_modules/@openai/codex-linux-x64/vendor/t/codex-path/rg", kStatic);
  machine.add_elf("node_modules/@openai/codex-linux-x64/vendor/t/codex-resources/bwrap", kStatic);
  machine.add_link("bin/codex", "../node_modules/@openai/codex/bin/codex.js");
  const auto agent = machine.examine({"codex"});
  CHECK(name_of(agent) == "codex");
  CHECK(paths(agent.scripts) == Strings{script});
  CHECK(paths(agent.runtimes) == Strings{elf});
  CHECK(agent.has_static_part());
  CHECK(agent.static_part() == elf);
  CHECK(agent.packages == Strings{machine.resolved("node_modules/@openai/codex"),
                                  machine.resolved("node_modules/@openai/codex-linux-x64")});

  const auto direct = machine.examine({elf});
  CHECK(name_of(direct) == "codex");
  CHECK(paths(direct.runtimes) == Strings{elf});
  CHECK(direct.has_static_part());
}

TEST_CASE("node SCRIPT is the script's agent", "[routerd]") {
  Machine machine;
  const auto script = machine.add("node_modules/@google/gemini-cli/bundle/gemini.js");
  machine.add_elf("bin/node", "/bin/true");
  const auto agent = machine.examine({"node", "--max-old-space-size=4096", script, "-p", "x"});
  CHECK(name_of(agent) == "gemini");
  CHECK(agent.program.script == script);
  CHECK(agent.program.interpreters == Strings{machine.resolved("bin/node")});
  CHECK(paths(agent.scripts) == Strings{script});
  CHECK(agent.runtimes.empty());
  CHECK(name_of(machine.examine({"node", "./node_modules/@google/gemini-cli/bundle/gemini.js"})) ==
        "gemini");
  CHECK(name_of(machine.examine({"node", "-r", script})).empty());
  CHECK(name_of(machine.examine({"node", "-e", "code"})).empty());
  CHECK(name_of(machine.examine({"node", machine.add("work/x.js")})).empty());
}

TEST_CASE("an unknown script is itself and nothing else", "[routerd]") {
  Machine machine;
  const auto script = machine.add("work/agent.sh");
  const auto agent = machine.examine({script});
  CHECK(name_of(agent).empty());
  CHECK(paths(agent.scripts) == Strings{script});
  CHECK(agent.runtimes.empty());
  CHECK(agent.packages.empty());
  const auto identity = identity_of(agent, kSafe);
  CHECK(identity.profile.empty());
  CHECK(identity.launchers == std::vector{routerd::file_id("/bin/sh")});
  CHECK_FALSE(identity.env.is_known());
  CHECK(machine.examine({"/bin/true"}).scripts.empty());
}

TEST_CASE("places of a profile are those of the agent's own environment", "[routerd]") {
  using routerd::expand_place;
  const contexts::Environment env = {"HOME=/home/a/", "CODEX_HOME=/srv/codex", "BAD=relative",
                                     "ROOT=/"};
  CHECK(expand_place("/x/y", env) == "/x/y");
  CHECK(expand_place("~/x", env) == "/home/a/x");
  CHECK(expand_place("$CODEX_HOME", env) == "/srv/codex");
  CHECK(expand_place("$CODEX_HOME/tmp", env) == "/srv/codex/tmp");
  CHECK(expand_place("$MISSING/tmp", env).empty());
  CHECK(expand_place("$BAD/tmp", env).empty());
  CHECK(expand_place("$ROOT/tmp", env).empty());
  CHECK(expand_place("~/x", {}).empty());
}

TEST_CASE("only what children cannot write stays with the agent by its folder", "[routerd]") {
  Machine machine;
  machine.add("node_modules/@openai/codex/bin/codex.js");
  machine.add_link("bin/codex", "../node_modules/@openai/codex/bin/codex.js");
  const auto agent = machine.examine({"codex"});
  const auto safe = identity_of(agent, kSafe);
  CHECK(safe.profile == "codex");
  CHECK(safe.packages == agent.packages);
  CHECK(safe.copies == Strings{machine.home() + "/.codex/packages"});
  CHECK(safe.scripts.size() == 1);
  const auto unsafe = identity_of(agent, kUnsafe);
  CHECK(unsafe.packages.empty());
  CHECK(unsafe.copies.empty());
  CHECK(unsafe.scripts == safe.scripts);
}

TEST_CASE("PID helpers are those of the system, never of PATH", "[routerd]") {
  Machine machine;
  machine.add("bin/ps");
  machine.add("node_modules/@google/gemini-cli/bundle/gemini.js");
  const auto agent = machine.examine({machine.path() + "/node_modules/@google/gemini-cli/bundle/"
                                                       "gemini.js"});
  REQUIRE_FALSE(agent.helpers.empty());
  CHECK(agent.helpers[0].id == routerd::file_id("/usr/bin/ps"));
  CHECK(agent.helpers[0].options == Strings{"-p"});
}

TEST_CASE("what is out of a context's reach", "[routerd]") {
  ContextSpec spec;
  spec.home = "/root";
  spec.share = {"/root/work", "/root/.codex/tmp"};
  spec.hide = {"/srv/secret"};
  spec.protect = {"/usr/lib/agent"};
  CHECK(is_out_of_reach(spec, "/root/.codex/packages"));
  CHECK(is_out_of_reach(spec, "/root/.x"));
  CHECK(is_out_of_reach(spec, "/srv/secret/x"));
  CHECK(is_out_of_reach(spec, "/usr/lib/agent"));
  CHECK(is_out_of_reach(spec, "/usr/lib/agent/bin"));
  CHECK_FALSE(is_out_of_reach(spec, "/root/work/x"));
  CHECK_FALSE(is_out_of_reach(spec, "/root/.codex"));  // something in it is shared
  CHECK_FALSE(is_out_of_reach(spec, "/usr/lib/agents"));
  CHECK_FALSE(is_out_of_reach(spec, "/usr/lib"));
  CHECK_FALSE(is_out_of_reach(spec, "/tmp/x"));
  spec.isolation = contexts::Isolation::none;
  CHECK_FALSE(is_out_of_reach(spec, "/root/.x"));
  ContextSpec with_home_of_platform;
  CHECK_FALSE(is_out_of_reach(with_home_of_platform, "/root/.x"));
}

TEST_CASE("installed agents are found by their commands", "[routerd]") {
  Machine machine;
  machine.add("node_modules/@google/gemini-cli/bundle/gemini.js");
  machine.add_link("bin/gemini", "../node_modules/@google/gemini-cli/bundle/gemini.js");
  machine.add("bin/claude");  // somebody's script of that name
  const auto agents = routerd::installed_agents(
      machine.profiles(), {"PATH=" + machine.path() + "/bin", "HOME=" + machine.home()});
  REQUIRE(agents.size() == 1);
  CHECK(name_of(agents[0]) == "gemini");
}
