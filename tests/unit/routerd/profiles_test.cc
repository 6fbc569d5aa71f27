#include "routerd/profiles.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/profiles.h"
#include "tests/support/temp_dir.h"

using routerd::Profiles;

namespace {

class Folder {
 public:
  void add(const std::string& name, const std::string& title, const std::string& rest = "") const {
    const std::string text =
        "title: " + title + "\npackages: ['*/" + title + "']\nruntimes: [x]\n" + rest;
    if (!base::write_file(folder_ / name, text, 0644)) FAIL("write " << name);
  }
  const std::string& path() const { return folder_.path(); }

 private:
  support::TempDir folder_;
};

std::set<std::string> titles(const Profiles& profiles) {
  std::set<std::string> all;
  for (const auto& profile : profiles.all()) all.insert(profile->title);
  return all;
}

}  // namespace

TEST_CASE("an earlier folder's profile stands for a later one's", "[routerd]") {
  const Folder own, shipped;
  own.add("a.yaml", "own-a");
  shipped.add("a.yaml", "shipped-a");
  shipped.add("b.yaml", "shipped-b");
  shipped.add("notes.txt", "no-profile");
  shipped.add(".hidden.yaml", "no-profile");
  const auto profiles = Profiles::load({"/does/not/exist", own.path(), shipped.path()});
  REQUIRE(profiles);
  CHECK(titles(*profiles) == std::set<std::string>{"own-a", "shipped-b"});
  CHECK(profiles->folders().size() == 3);
  CHECK(profiles->of_file("/x/shipped-a/x", "/root") == nullptr);
  REQUIRE(profiles->of_file("/x/own-a/x", "/root") != nullptr);
  CHECK(profiles->of_file("/x/own-a/x", "/root")->name == "a");
}

TEST_CASE("all errors of all profiles are told", "[routerd]") {
  const Folder folder;
  folder.add("a.yaml", "a", "bad_key: 1\n");
  folder.add("b.yaml", "b");
  folder.add("c.yaml", "c", "commands: 1\n");
  const auto profiles = Profiles::load({folder.path()});
  REQUIRE_FALSE(profiles);
  REQUIRE(profiles.error().size() == 2);
  CHECK_THAT(profiles.error()[0].render(), Catch::StartsWith(folder.path() + "/a.yaml:4:1:"));
  CHECK_THAT(profiles.error()[1].render(), Catch::StartsWith(folder.path() + "/c.yaml:4:11:"));
}

TEST_CASE("a package is the outermost folder that matches", "[routerd]") {
  routerd::AgentProfile profile;
  profile.packages = {"*/node_modules/agent", "~/.agent", "/opt/*"};
  const auto package = [&profile](const std::string& path, const std::string& home = "/home/a") {
    return routerd::package_of(profile, path, home);
  };
  CHECK(package("/usr/lib/node_modules/agent/bin/x") == "/usr/lib/node_modules/agent");
  CHECK(package("/a/node_modules/agent/b/node_modules/agent/x") == "/a/node_modules/agent");
  CHECK(package("/usr/lib/node_modules/agent") == "");
  CHECK(package("/usr/lib/node_modules/agent-2/x") == "");
  CHECK(package("/home/a/.agent/x") == "/home/a/.agent");
  CHECK(package("/home/b/.agent/x") == "");
  CHECK(package("/home/a/.agent/x", "") == "");
  CHECK(package("/home/[ab]/.agent/x", "/home/[ab]") == "/home/[ab]/.agent");
  CHECK(package("/opt/x/y") == "/opt/x");
  CHECK(package("") == "");
}

TEST_CASE("the shipped profiles know the agents by where they are installed", "[routerd]") {
  const auto profiles = support::shipped_profiles();
  struct Row {
    const char* path;
    const char* name;
  };
  const auto row = GENERATE(values<Row>({
      {"/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "claude"},
      {"/usr/lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude", "claude"},
      {"/root/.local/share/claude/versions/2.1.329", "claude"},
      {"/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js", "gemini"},
      {"/usr/lib/node_modules/@openai/codex/bin/codex.js", "codex"},
      {"/usr/lib/node_modules/@openai/codex-linux-x64/vendor/t/bin/codex", "codex"},
      {"/usr/lib/node_modules/@github/copilot/npm-loader.js", "copilot"},
      {"/usr/lib/node_modules/opencode-ai/bin/opencode", "opencode"},
      {"/root/.opencode/bin/opencode", "opencode"},
      {"/usr/lib/node_modules/@qwen-code/qwen-code/cli.js", "qwen"},
      {"/usr/bin/node", ""},
      {"/usr/bin/claude", ""},
      {"/work/claude/bin/claude.exe", ""},
  }));
  CAPTURE(row.path);
  const auto profile = profiles.of_file(row.path, "/root");
  CHECK((profile ? profile->name : "") == row.name);
}

TEST_CASE("the shipped profiles can be asked by command", "[routerd]") {
  const auto profiles = support::shipped_profiles();
  for (const auto* name : {"claude", "codex", "copilot", "gemini", "opencode", "qwen"}) {
    CAPTURE(name);
    REQUIRE(profiles.of_command(name) != nullptr);
    CHECK(profiles.of_command(name)->name == name);
  }
  CHECK(profiles.of_command("bash") == nullptr);
}

TEST_CASE("profiles are looked for in the order the documentation gives", "[routerd]") {
  const auto folders = support::text_of_child([] {
    ::setenv("AIRLOCK_PROFILES", "/a", 1);
    ::unsetenv("XDG_CONFIG_HOME");
    ::setenv("HOME", "/home/u", 1);
    std::string text;
    for (const auto& folder : routerd::profile_folders("/usr/libexec/airlock"))
      text += folder + "\n";
    ::setenv("XDG_CONFIG_HOME", "/c", 1);
    ::unsetenv("AIRLOCK_PROFILES");
    text += routerd::profile_folders("/usr/libexec/airlock").front() + "\n";
    ::setenv("XDG_CONFIG_HOME", "relative", 1);
    ::setenv("HOME", "", 1);
    return text + routerd::profile_folders("/usr/libexec/airlock").front();
  });
  CHECK(folders ==
        "/a\n/home/u/.config/airlock/profiles\n/etc/airlock/profiles\n"
        "/usr/share/airlock/profiles\n/c/airlock/profiles\n/etc/airlock/profiles");
}
