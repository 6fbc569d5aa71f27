#include "routerd/home_shares.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using routerd::default_shares;
using routerd::Program;

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
                                  const Program* agent = nullptr) const {
    auto all = default_shares(path(), cwd, search_path, agent);
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

Program script_agent(const std::string& script) {
  Program program;
  program.path = script;
  program.script = script;
  program.executable = "/usr/bin/node";
  return program;
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
  CHECK(home.shares("/", "", &agent) == Paths{"/.npm-global/lib/node_modules"});

  home.add("/bin");
  Program native;
  native.path = native.executable = home.add_file("/bin/agent");
  CHECK(home.shares("/", "", &native) == Paths{"/bin"});
  native.path = native.executable = home.add_file("/agent");
  CHECK(home.shares("/", "", &native).empty());
}

TEST_CASE("a known agent's folders are created and shared with its children", "[routerd][root]") {
  if (support::lacks_root()) return;
  Home home;
  REQUIRE(::chown(home.path().c_str(), 1000, 1001) == 0);
  const auto claude = script_agent("/usr/lib/node_modules/@anthropic-ai/claude-code/claude.js");
  CHECK(home.shares("/", "", &claude).empty());
  routerd::create_agent_folders(home.path(), claude);
  for (const auto* folder : {"/.claude", "/.claude/shell-snapshots", "/.claude/session-env"}) {
    CAPTURE(folder);
    struct stat info {};
    REQUIRE(::stat((home.path() + folder).c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    CHECK(info.st_uid == 1000);
    CHECK(info.st_gid == 1001);
  }
  CHECK(home.shares("/", "", &claude) == Paths{"/.claude/session-env", "/.claude/shell-snapshots"});
}

TEST_CASE("folders that are there already keep their owner and mode", "[routerd]") {
  Home home;
  const auto folder = home.add("/.claude");
  REQUIRE(::chmod(folder.c_str(), 0750) == 0);
  const auto claude = script_agent("/usr/lib/node_modules/@anthropic-ai/claude-code/claude.js");
  routerd::create_agent_folders(home.path(), claude);
  struct stat info {};
  REQUIRE(::stat(folder.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0750);
}

TEST_CASE("an unknown agent gets no folders", "[routerd]") {
  Home home;
  routerd::create_agent_folders(home.path(), script_agent("/tmp/agent.js"));
  CHECK(std::filesystem::is_empty(home.path()));
}
