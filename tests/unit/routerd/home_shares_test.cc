#include "routerd/home_shares.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using routerd::Agent;
using routerd::default_shares;

namespace {

class Home {
 public:
  Home() { add(""); }
  std::string add(const std::string& folder) {
    std::filesystem::create_directories(path() + folder);
    return path() + folder;
  }
  std::string add_file(const std::string& file) {
    if (!base::write_file(path() + file, "x", 0600)) FAIL("write " << file);
    return path() + file;
  }
  std::string path() const { return folder_ / "home"; }

  /// Paths relative to this HOME.
  std::vector<std::string> shares(const std::string& cwd = "/", const std::string& search_path = "",
                                  const std::vector<Agent>& agents = {}) const {
    auto all = default_shares(path(), cwd, search_path, agents);
    for (auto& share : all) {
      CHECK(share.starts_with(path() + "/"));
      share.erase(0, path().size());
    }
    return all;
  }

 private:
  support::TempDir folder_;
};

using Paths = std::vector<std::string>;

Agent script_agent(const std::string& script) {
  Agent agent;
  agent.program.path = script;
  agent.program.script = script;
  agent.program.executable = "/usr/bin/node";
  return agent;
}

/// With folders of `home` that it shares with its children.
Agent sharing_agent(const Home& home, const std::vector<std::string>& folders) {
  auto agent = script_agent("/usr/lib/node_modules/agent/agent.js");
  for (const auto& folder : folders) agent.share.push_back(home.path() + folder);
  return agent;
}

routerd::Profiles no_profiles(const std::string& folder) {
  return routerd::Profiles::load({folder}).value();
}

}  // namespace

TEST_CASE("tools and caches of HOME are shared where they are", "[routerd]") {
  Home home;
  CHECK(home.shares().empty());
  home.add("/.cargo/bin");
  home.add("/.cache/pip");
  home.add_file("/.gitconfig");
  CHECK(home.shares() == Paths{"/.cache/pip", "/.cargo/bin", "/.gitconfig"});
}

TEST_CASE("folders of credentials are not shared", "[routerd]") {
  Home home;
  for (const auto* folder : {"/.ssh", "/.aws", "/.gnupg", "/.config", "/.config/gh", "/.docker",
                             "/.kube", "/.claude", "/.npm", "/.cargo", "/.netrc", "/.azure",
                             "/.config/gcloud", "/.codex", "/.gemini", "/.local"}) {
    home.add(folder);
  }
  CHECK(home.shares().empty());
}

TEST_CASE("the working directory and PATH are shared as far as they lie in HOME", "[routerd]") {
  Home home;
  home.add("/project");
  home.add("/tools/bin");
  CHECK(home.shares(home.path() + "/project") == Paths{"/project"});
  CHECK(home.shares("/", "/usr/bin:" + home.path() + "/tools/bin:" + home.path() + "/missing") ==
        Paths{"/tools/bin"});
  CHECK(home.shares("/etc", "/usr/bin:/bin").empty());
}

TEST_CASE("HOME itself is never shared", "[routerd]") {
  Home home;
  CHECK(home.shares(home.path(), home.path()).empty());
  CHECK(home.shares(home.path() + "/", home.path() + "/").empty());
}

TEST_CASE("what only begins like HOME is not in it", "[routerd]") {
  Home home;
  std::filesystem::create_directories(home.path() + "-other/bin");
  CHECK(home.shares(home.path() + "-other", home.path() + "-other/bin").empty());
}

TEST_CASE("a folder inside a shared one needs no mount of its own", "[routerd]") {
  Home home;
  home.add("/project/node_modules/.bin");
  CHECK(home.shares(home.path() + "/project", home.path() + "/project/node_modules/.bin") ==
        Paths{"/project"});
}

TEST_CASE("a folder inside a shared one is seen behind one that sorts between", "[routerd]") {
  Home home;
  home.add("/project/bin");
  home.add("/project-tools");
  const std::string path = home.path() + "/project/bin:" + home.path() + "/project-tools";
  CHECK(home.shares(home.path() + "/project", path) == Paths{"/project", "/project-tools"});
}

TEST_CASE("an agent brings its installation along", "[routerd]") {
  Home home;
  home.add("/.npm-global/lib/node_modules/@google/gemini-cli/dist");
  const auto script =
      home.add_file("/.npm-global/lib/node_modules/@google/gemini-cli/dist/index.js");
  const auto agent = script_agent(script);
  CHECK(home.shares("/", "", {agent}) == Paths{"/.npm-global/lib/node_modules"});

  home.add("/bin");
  Agent native;
  native.program.path = native.program.executable = home.add_file("/bin/agent");
  CHECK(home.shares("/", "", {native}) == Paths{"/bin"});
  native.program.path = native.program.executable = home.add_file("/agent");
  CHECK(home.shares("/", "", {native}).empty());
}

TEST_CASE("an agent's executable may be in another package than its launcher", "[routerd]") {
  Home home;
  home.add("/a/node_modules/codex");
  home.add("/b/node_modules/codex-linux-x64");
  auto agent = script_agent(home.path() + "/a/node_modules/codex/x.js");
  agent.packages = {home.path() + "/a/node_modules/codex",
                    home.path() + "/b/node_modules/codex-linux-x64"};
  CHECK(home.shares("/", "", {agent}) == Paths{"/a/node_modules", "/b/node_modules"});
}

TEST_CASE("an agent's folders are created and shared with its children", "[routerd][root]") {
  if (support::lacks_root()) return;
  Home home;
  REQUIRE(::chown(home.path().c_str(), 1000, 1001) == 0);
  const auto agent = sharing_agent(home, {"/.agent/snapshots", "/.agent/sessions"});
  CHECK(home.shares("/", "", {agent}).empty());
  routerd::create_agent_folders(home.path(), agent);
  for (const auto* folder : {"/.agent", "/.agent/snapshots", "/.agent/sessions"}) {
    CAPTURE(folder);
    struct stat info {};
    REQUIRE(::stat((home.path() + folder).c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    CHECK(info.st_uid == 1000);
    CHECK(info.st_gid == 1001);
  }
  CHECK(home.shares("/", "", {agent}) == Paths{"/.agent/sessions", "/.agent/snapshots"});
}

TEST_CASE("folders that are there already keep their owner and mode", "[routerd]") {
  Home home;
  const auto folder = home.add("/.agent");
  REQUIRE(::chmod(folder.c_str(), 0750) == 0);
  routerd::create_agent_folders(home.path(), sharing_agent(home, {"/.agent/x"}));
  struct stat info {};
  REQUIRE(::stat(folder.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0750);
}

TEST_CASE("nothing is created outside HOME", "[routerd]") {
  Home home;
  Home other;
  auto agent = sharing_agent(other, {"/x"});
  agent.share.push_back(home.path() + "-other/x");
  routerd::create_agent_folders(home.path(), agent);
  CHECK(std::filesystem::is_empty(home.path()));
  CHECK(std::filesystem::is_empty(other.path()));
  CHECK_FALSE(std::filesystem::exists(home.path() + "-other"));
}

TEST_CASE("a context for an agent's children can only read its package", "[routerd]") {
  Home home;
  const auto profiles = no_profiles(home.path() + "/profiles");
  auto agent = script_agent("/usr/lib/node_modules/agent/agent.js");
  agent.packages = {"/usr/lib/node_modules/agent", "/work/node_modules/agent"};
  agent.hide = {home.add("/secrets"), home.path() + "/missing", home.add_file("/file")};
  contexts::ContextSpec spec;
  spec.cwd = "/work";
  routerd::adapt_to_agents(spec, {agent, agent}, profiles);
  CHECK(spec.protect == Paths{"/usr/lib/node_modules/agent", home.path() + "/profiles"});
  CHECK(spec.hide == Paths{home.path() + "/secrets"});
}
