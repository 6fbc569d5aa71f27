#include "routerd/routing.h"

#include <catch2/catch.hpp>
#include <ostream>

using namespace routerd;
using contexts::ContextSpec;
using contexts::RuleAction;

namespace {

constexpr FileId kClaude{1, 10};
constexpr FileId kNode{1, 20};
constexpr FileId kStub{1, 30};
constexpr FileId kOther{1, 40};

const char* const kClaudePath =
    "/usr/lib/node_modules/@anthropic-ai/claude-code-linux-x64/bin/claude.exe";
const char* const kGeminiScript = "/usr/lib/node_modules/@google/gemini-cli/dist/index.js";

ContextSpec platform() {
  ContextSpec spec;
  spec.name = "platform";
  spec.child_context = "user";
  return spec;
}

RouteFacts program(const std::string& path, FileId id = kOther) {
  RouteFacts facts;
  facts.program = path;
  facts.program_id = id;
  facts.stub_id = kStub;
  facts.argv = {"argv0"};
  return facts;
}

constexpr FileId kScript{1, 50};
constexpr FileId kEnv{1, 60};
constexpr FileId kPs{1, 70};

AgentIdentity claude() {
  AgentIdentity agent;
  agent.executable = kClaudePath;
  agent.executable_id = kClaude;
  agent.profile = "claude";
  agent.runtimes = {kClaude};
  return agent;
}

AgentIdentity gemini() {
  AgentIdentity agent;
  agent.executable = "/usr/bin/node";
  agent.executable_id = kNode;
  agent.script = kGeminiScript;
  agent.profile = "gemini";
  agent.scripts = {kScript};
  agent.launchers = {kNode};
  agent.env = kEnv;
  agent.packages = {"/usr/lib/node_modules/@google/gemini-cli"};
  return agent;
}

/// node with these words; the script, if there is one, is the file `script`.
RouteFacts node(std::vector<std::string_view> argv, FileId script = kOther) {
  auto facts = program("/usr/bin/node", kNode);
  facts.agent = gemini();
  facts.argv = std::move(argv);
  facts.script_id = script;
  return facts;
}

/// "run_in user by child_context".
std::string text_of(const Decision& decision) {
  switch (decision.outcome) {
    case Outcome::run_in:
      CHECK(decision.reason.empty());
      return "run in " + decision.context + " by " + decision.rule;
    case Outcome::run_here:
      CHECK(decision.context.empty());
      return "run here by " + decision.rule;
    case Outcome::refuse:
      CHECK(decision.context.empty());
      CHECK_FALSE(decision.reason.empty());
      return "refuse by " + decision.rule;
  }
  return {};
}

std::string decided(const ContextSpec& from, const RouteFacts& facts) {
  return text_of(decide(from, facts));
}

}  // namespace

TEST_CASE("children run in the child context", "[routerd]") {
  CHECK(decided(platform(), program("/bin/ls")) == "run in user by child_context");
}

TEST_CASE("without a child context nothing runs", "[routerd]") {
  ContextSpec spec = platform();
  spec.child_context.clear();
  const auto decision = decide(spec, program("/bin/ls"));
  CHECK(text_of(decision) == "refuse by no-route");
  CHECK(decision.reason == "context 'platform' has no child_context");
}

TEST_CASE("the stub is refused before any other rule", "[routerd]") {
  ContextSpec spec = platform();
  spec.routes = {{"*", RuleAction::here, {}}};
  auto facts = program("/run/airlock/airlock-stub", kStub);
  facts.agent = claude();
  facts.agent.runtimes = {kStub};
  facts.requested_context = "user";
  CHECK(decided(spec, facts) == "refuse by stub-recursion");
  SECTION("but two unknown files are not the same file") {
    facts.program_id = {};
    facts.stub_id = {};
    CHECK(decided(spec, facts) == "run here by routes[0]");
  }
}

TEST_CASE("a context's own rules are tried in order", "[routerd]") {
  ContextSpec spec = platform();
  spec.routes = {{"/usr/bin/git", RuleAction::here, {}},
                 {"/usr/bin/g*", RuleAction::refuse, {}},
                 {"/opt/*/tool", RuleAction::route, "tools"},
                 {"/usr/bin/make", RuleAction::route, {}}};
  CHECK(decided(spec, program("/usr/bin/git")) == "run here by routes[0]");
  CHECK(decided(spec, program("/usr/bin/gcc")) == "refuse by routes[1]");
  CHECK(decide(spec, program("/usr/bin/gcc")).reason ==
        "/usr/bin/gcc is refused by a rule of context 'platform'");
  CHECK(decided(spec, program("/opt/a/b/tool")) == "run in tools by routes[2]");
  CHECK(decided(spec, program("/usr/bin/make")) == "run in user by routes[3]");
  CHECK(decided(spec, program("/usr/bin/ls")) == "run in user by child_context");
}

TEST_CASE("rules match the whole absolute path, never a bare name", "[routerd]") {
  ContextSpec spec = platform();
  spec.routes = {{"git", RuleAction::refuse, {}}, {"/usr/bin/gi", RuleAction::refuse, {}}};
  CHECK(decided(spec, program("/usr/bin/git")) == "run in user by child_context");
  CHECK(decided(spec, program("")) == "run in user by child_context");
}

TEST_CASE("a context's own rules come before known agents and requested contexts", "[routerd]") {
  ContextSpec spec = platform();
  spec.routes = {{"*", RuleAction::refuse, {}}};
  auto facts = program(kClaudePath, kClaude);
  facts.agent = claude();
  facts.requested_context = "user";
  CHECK(decided(spec, facts) == "refuse by routes[0]");
}

TEST_CASE("an agent's own executable stays where it is, whatever its name", "[routerd]") {
  auto facts = program("/proc/self/exe", kClaude);
  facts.agent = claude();
  CHECK(decided(platform(), facts) == "run here by claude:runtime");
  SECTION("also when another context is asked for") {
    facts.requested_context = "user";
    CHECK(decided(platform(), facts) == "run here by claude:runtime");
  }
  SECTION("but another file under its name does not") {
    facts.program = kClaudePath;
    facts.program_id = kOther;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("nor a file that cannot be identified") {
    facts.program_id = {};
    facts.agent.runtimes = {FileId{}};
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("nor one that was written since") {
    facts.program_id.changed = 1;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("nor when another program than the agent runs it") {
    facts.is_called_by_agent = false;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
}

TEST_CASE("the stub is known whatever was linked to it", "[routerd]") {
  auto facts = program("/usr/bin/git", kStub);
  facts.program_id.changed = 5;
  CHECK(decided(platform(), facts) == "refuse by stub-recursion");
}

TEST_CASE("an agent nobody knows has no re-execs of its own", "[routerd]") {
  auto facts = program("/usr/bin/node", kNode);
  facts.agent.executable = "/usr/bin/node";
  facts.agent.executable_id = kNode;
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("the interpreter of a script agent is not the agent", "[routerd]") {
  CHECK(decided(platform(), node({"node", "/tmp/user-script.js"})) ==
        "run in user by child_context");
}

TEST_CASE("a script agent that runs itself again is recognised by its shape", "[routerd]") {
  struct Row {
    std::vector<std::string_view> argv;
    bool is_own;
  };
  const std::string_view script = kGeminiScript;
  const auto row = GENERATE_COPY(values<Row>({
      {{"node", script}, true},
      {{"node", script, "-p", "prompt"}, true},
      {{"node", "--no-warnings=DEP0040", script}, true},
      {{"node", "--max-old-space-size=4096", "--expose-gc", script, "--x"}, true},
      {{"node"}, false},
      {{}, false},
      {{script}, false},
      {{"node", "-e", "code", script}, false},
      {{"node", "--eval=code", script}, false},
      {{"node", "-r", script}, false},
      {{"node", "--require=/tmp/x.js", script}, false},
      {{"node", "--import", "/tmp/x.mjs", script}, false},
      {{"node", "--loader=/tmp/x.mjs", script}, false},
      {{"node", "-p", script}, false},
      {{"node", "-i", script}, false},
      {{"node", "-s", script}, false},
      {{"node", "--print", script}, false},
  }));
  std::string shown;
  for (const auto word : row.argv) shown += std::string(word) + " ";
  CAPTURE(shown);
  CHECK(decided(platform(), node(row.argv, kScript)) ==
        (row.is_own ? "run here by gemini:script" : "run in user by child_context"));
}

TEST_CASE("the words before a script decide whether it is one", "[routerd]") {
  struct Row {
    FileId program;
    std::vector<std::string_view> argv;
    std::string_view word;
  };
  const auto row = GENERATE(values<Row>({
      {kNode, {"node", "x.js", "y.js"}, "x.js"},
      {kOther, {"node", "x.js"}, ""},
      {{}, {"node", "x.js"}, ""},
      {kEnv, {"env", "node", "x.js"}, "x.js"},
      {kEnv, {"env", "-S node --no-warnings=DEP0040", "x.js"}, "x.js"},
      {kEnv, {"env", "-Snode  --expose-gc", "x.js", "-e"}, "x.js"},
      {kEnv, {"env", "-S node -e code", "x.js"}, ""},
      {kEnv, {"env", "node", "--import", "x.js"}, ""},
      {kEnv, {"env", "NODE_OPTIONS=--import=/tmp/x", "node", "x.js"}, ""},
      {kEnv, {"env", "-i", "node", "x.js"}, ""},
      {kEnv, {"env", "-S", "x.js"}, ""},
      {kEnv, {"env", "node"}, ""},
      {kEnv, {"env"}, ""},
      {kEnv, {}, ""},
  }));
  std::string shown;
  for (const auto word : row.argv) shown += std::string(word) + " ";
  CAPTURE(shown);
  CHECK(script_word(gemini(), row.program, row.argv) == row.word);
}

TEST_CASE("flags of one letter are known for Python only", "[routerd]") {
  auto agent = gemini();
  CHECK(script_word(agent, kNode, {"node", "-u", "x"}).empty());
  agent.executable = "/usr/bin/python3.11";
  CHECK(script_word(agent, kNode, {"python3", "-u", "-B", "x.py"}) == "x.py");
  CHECK(script_word(agent, kNode, {"python3", "-c", "x.py"}).empty());
  CHECK(script_word(agent, kNode, {"python3", "-m", "x.py"}).empty());
  agent.executable = "/bin/bash";  // bash -s reads commands from stdin
  CHECK(script_word(agent, kNode, {"bash", "-s", "x"}).empty());
}

TEST_CASE("flags that bring code of their own disqualify a script", "[routerd]") {
  // node(1): each of these runs code or sets NODE_OPTIONS before the script does anything.
  const std::string_view flag =
      GENERATE("--experimental-loader=/tmp/x.mjs", "-pe", "--env-file=/tmp/x");
  CAPTURE(flag);
  CHECK(decided(platform(), node({"node", flag, kGeminiScript}, kScript)) ==
        "run in user by child_context");
}

TEST_CASE("another program does not become the agent by its script's name", "[routerd]") {
  auto facts = node({"linter", kGeminiScript}, kScript);
  facts.program = "/work/linter";
  facts.program_id = kOther;
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("scripts of the package are the agent's where only the platform can write", "[routerd]") {
  auto facts = node({"node", "worker.js"});
  facts.resolved_script = "/usr/lib/node_modules/@google/gemini-cli/bundle/worker.js";
  CHECK(decided(platform(), facts) == "run here by gemini:script");
  facts.resolved_script = "/usr/lib/node_modules/@google/gemini-cli-evil/worker.js";
  CHECK(decided(platform(), facts) == "run in user by child_context");
  facts.resolved_script = "/usr/lib/node_modules/@google/gemini-cli/worker.js";
  facts.agent.packages.clear();
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("a script that is executed itself is the agent, too", "[routerd]") {
  auto facts = program("/usr/local/bin/gemini", kScript);
  facts.agent = gemini();
  CHECK(decided(platform(), facts) == "run here by gemini:script");
}

TEST_CASE("a script nobody knows has its own #! launchers and nothing else", "[routerd]") {
  auto facts = node({"node", "/work/agent.js"}, kScript);
  facts.agent.profile.clear();
  CHECK(decided(platform(), facts) == "run here by agent:script");
  facts.script_id = kOther;
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("copies of the agent are known by their folder", "[routerd]") {
  auto facts = program("/root/.codex/packages/x/codex");
  facts.agent = claude();
  facts.agent.copies = {"/root/.codex/packages"};
  CHECK(decided(platform(), facts) == "run in user by child_context");
  facts.resolved_program = facts.program;
  CHECK(decided(platform(), facts) == "run here by claude:copy");
  facts.resolved_program = "/root/.codex/packages2/codex";
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("questions about pids are answered where the agent runs", "[routerd]") {
  struct Row {
    std::vector<std::string_view> argv;
    bool is_here;
  };
  const auto row = GENERATE(values<Row>({
      {{"ps", "-p", "123", "-o", "pid="}, true},
      {{"ps", "-o", "ppid=,command=", "-p", "123"}, true},
      {{"ps", "-p123"}, true},
      {{"ps", "-p", "1,2"}, true},
      {{"ps", "-e"}, false},
      {{"ps"}, false},
      {{"ps", "-print"}, false},
      {{"ps", "--ppid", "3"}, false},
  }));
  auto facts = program("/usr/bin/ps", kPs);
  facts.agent = claude();
  facts.agent.helpers = {{kPs, {"-p"}}};
  facts.argv = row.argv;
  const auto* expected =
      row.is_here ? "run here by claude:pid-helper" : "run in user by child_context";
  CHECK(decided(platform(), facts) == expected);
  SECTION("but not those of a shell that the agent started") {
    facts.is_called_by_agent = false;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("and not by another program of that name") {
    facts.program_id = kOther;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
}

TEST_CASE("servers run where the profile says", "[routerd]") {
  auto facts = program("/usr/bin/gopls");
  facts.agent = gemini();
  facts.agent.servers = {{kOther, true}};
  CHECK(decided(platform(), facts) == "run here by gemini:server");
  facts.agent.servers = {{kOther, false}};
  CHECK(decided(platform(), facts) == "run in user by child_context");
  SECTION("a script, too") {
    facts = node({"node", "/opt/server.js"});
    facts.agent.servers = {{kOther, true}};
    CHECK(decided(platform(), facts) == "run here by gemini:server");
    facts.argv = {"node", "-e", "code", "/opt/server.js"};
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("before the agent's own files") {
    facts = node({"node", "server.js"}, kScript);
    facts.agent.servers = {{kScript, false}};
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
}

TEST_CASE("a folder holds what is in it, not what is called alike", "[routerd]") {
  CHECK(is_below("/a/b", "/a/b"));
  CHECK(is_below("/a/b/c", "/a/b"));
  CHECK_FALSE(is_below("/a/bc", "/a/b"));
  CHECK_FALSE(is_below("/a", "/a/b"));
  CHECK_FALSE(is_below("", "/a"));
}

TEST_CASE("a version manager's shim goes on where it was launched", "[routerd]") {
  auto facts = program("/bin/bash");
  facts.agent.script = "/root/.pyenv/shims/agent";
  CHECK(decided(platform(), facts) == "run in user by child_context");
  facts.is_launched_process = true;
  CHECK(decided(platform(), facts) == "run here by agent-shim");
  SECTION("but no other script does") {
    facts.agent.script = "/usr/bin/agent";
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("and a rule of the context comes first") {
    ContextSpec spec = platform();
    spec.routes = {{"/bin/*", RuleAction::refuse, {}}};
    CHECK(decided(spec, facts) == "refuse by routes[0]");
  }
}

TEST_CASE("shims are known by their folders", "[routerd]") {
  for (const auto* script :
       {"/root/.pyenv/shims/aider", "/home/a/.rbenv/shims/x", "/home/a/.asdf/shims/x",
        "/home/a/.local/share/mise/shims/x", "/home/a/.volta/bin/x", "/home/a/.nodenv/shims/x"}) {
    CAPTURE(script);
    CHECK(is_shim(script));
  }
  for (const auto* script : {"", "/usr/bin/aider", "/root/.pyenv/bin/pyenv", "/root/shims/x"}) {
    CAPTURE(script);
    CHECK_FALSE(is_shim(script));
  }
}

TEST_CASE("a native agent has no launcher", "[routerd]") {
  auto facts = program("/usr/bin/env", kOther);
  facts.agent = claude();
  facts.argv = {"env", kClaudePath};
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("a caller chooses among the contexts it can reach anyway", "[routerd]") {
  ContextSpec spec = platform();
  spec.routes = {{"/opt/tool", RuleAction::route, "tools"}};
  auto facts = program("/bin/ls");
  facts.requested_context = "tools";
  CHECK(decided(spec, facts) == "run in tools by SANDBOX_ROUTE_TO_CONTEXT");
  facts.requested_context = "user";
  CHECK(decided(spec, facts) == "run in user by SANDBOX_ROUTE_TO_CONTEXT");
  facts.requested_context = "secret";
  const auto decision = decide(spec, facts);
  CHECK(text_of(decision) == "refuse by SANDBOX_ROUTE_TO_CONTEXT");
  CHECK(decision.reason == "context 'secret' cannot be reached from 'platform'");
  facts.requested_context = "platform";
  CHECK(decided(spec, facts) == "refuse by SANDBOX_ROUTE_TO_CONTEXT");
}
