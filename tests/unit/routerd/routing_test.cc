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

AgentIdentity claude() { return {kClaudePath, kClaude, {}}; }
AgentIdentity gemini() { return {"/usr/bin/node", kNode, kGeminiScript}; }

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
  facts.agent = {"/run/airlock/airlock-stub", kStub, {}};
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
  CHECK(decided(platform(), facts) == "run here by agent:claude");
  SECTION("also when another context is asked for") {
    facts.requested_context = "user";
    CHECK(decided(platform(), facts) == "run here by agent:claude");
  }
  SECTION("but another file under its name does not") {
    facts.program = kClaudePath;
    facts.program_id = kOther;
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
  SECTION("nor a file that cannot be identified") {
    facts.program_id = {};
    facts.agent.executable_id = {};
    CHECK(decided(platform(), facts) == "run in user by child_context");
  }
}

TEST_CASE("an agent nobody knows has no re-execs of its own", "[routerd]") {
  auto facts = program("/usr/bin/node", kNode);
  facts.agent = {"/usr/bin/node", kNode, {}};
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("the interpreter of a script agent is not the agent", "[routerd]") {
  auto facts = program("/usr/bin/node", kNode);
  facts.agent = gemini();
  facts.argv = {"node", "/tmp/user-script.js"};
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("a script agent's launcher is recognised by its shape", "[routerd]") {
  struct Row {
    std::vector<std::string_view> argv;
    bool is_launcher;
  };
  const std::string_view script = kGeminiScript;
  const auto row = GENERATE_COPY(values<Row>({
      {{"env", script}, true},
      {{"node", script}, true},
      {{"node", script, "-p", "prompt"}, true},
      {{"node", "--no-warnings=DEP0040", script}, true},
      {{"node", "--max-old-space-size=4096", "--expose-gc", script, "--x"}, true},
      {{"node"}, false},
      {{}, false},
      {{script}, false},
      {{"node", "/tmp/x.js", script}, false},
      {{"node", "-e", "code", script}, false},
      {{"node", "--eval=code", script}, false},
      {{"node", "-r", script}, false},
      {{"node", "--require=/tmp/x.js", script}, false},
      {{"node", "--import", "/tmp/x.mjs", script}, false},
      {{"node", "--loader=/tmp/x.mjs", script}, false},
      {{"node", "-p", script}, false},
      {{"python", "-c", script}, false},
      {{"python", "-m", script}, false},
      {{"node", "-i", script}, false},
      {{"node", "--print", script}, false},
  }));
  std::string shown;
  for (const auto word : row.argv) shown += std::string(word) + " ";
  CAPTURE(shown);
  auto facts = program("/usr/bin/node", kNode);
  facts.agent = gemini();
  facts.argv = row.argv;
  CHECK(decided(platform(), facts) ==
        (row.is_launcher ? "run here by agent-launcher" : "run in user by child_context"));
}

TEST_CASE("flags that bring code of their own disqualify a launcher", "[routerd]") {
  // node(1): each of these runs code or sets NODE_OPTIONS before the script does anything.
  const std::string_view flag =
      GENERATE("--experimental-loader=/tmp/x.mjs", "-pe", "--env-file=/tmp/x");
  CAPTURE(flag);
  auto facts = program("/usr/bin/node", kNode);
  facts.agent = gemini();
  facts.argv = {"node", flag, kGeminiScript};
  CHECK(decided(platform(), facts) == "run in user by child_context");
}

TEST_CASE("a version manager's shim goes on where it was launched", "[routerd]") {
  auto facts = program("/bin/bash");
  facts.agent = {"/bin/bash", kOther, "/root/.pyenv/shims/agent"};
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

TEST_CASE("agents are known by the resolved path of what they are", "[routerd]") {
  struct Row {
    AgentIdentity agent;
    const char* name;
  };
  const auto row = GENERATE(values<Row>({
      {{kClaudePath, kClaude, {}}, "claude"},
      {{"/usr/bin/node", kNode, "/root/.npm/lib/node_modules/@anthropic-ai/claude-code/claude.js"},
       "claude"},
      {{"/usr/lib/node_modules/opencode-ai/node_modules/opencode-linux-x64/bin/opencode",
        kOther,
        {}},
       "opencode"},
      {{"/usr/bin/node", kNode, kGeminiScript}, "gemini"},
      {{"/usr/bin/node", kNode, "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js"}, "qwen"},
      {{"/usr/bin/node", kNode, "/usr/lib/node_modules/@github/copilot/index.js"}, "copilot"},
      {{"/usr/lib/node_modules/@openai/codex-linux-x64/vendor/codex", kOther, {}}, "codex"},
      {{"/usr/bin/node", kNode, {}}, ""},
      {{"/usr/bin/claude", kOther, {}}, ""},
      {{"", {}, {}}, ""},
  }));
  CAPTURE(row.agent.executable, row.agent.script);
  const KnownAgent* known = find_agent(row.agent);
  CHECK((known != nullptr ? std::string(known->name) : "") == row.name);
}

TEST_CASE("a script decides who an agent is, not its interpreter", "[routerd]") {
  // An agent's own native helper running somebody's script is not the agent.
  CHECK(find_agent({kClaudePath, kClaude, "/tmp/script"}) == nullptr);
}
