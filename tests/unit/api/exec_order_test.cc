#include "api/exec_order.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using api::read_exec_order;
using nlohmann::json;

namespace {

api::ExecOrder order_of(const json& body) {
  auto order = read_exec_order(body);
  REQUIRE(order);
  return *order;
}

}  // namespace

TEST_CASE("words are run as they are, text by a shell", "[api]") {
  const auto words = api::to_request(order_of({{"argv", {"ls", "", "a b"}}}), "user", "bash");
  CHECK(words.path == "ls");
  CHECK(words.argv.strings() == std::vector<std::string>{"ls", "", "a b"});
  CHECK(words.policy.context == "user");
  CHECK(words.policy.env == wire::EnvMode::context);
  const auto text = api::to_request(order_of({{"command", "ls | wc"}}), "user", "bash");
  CHECK(text.argv.strings() == std::vector<std::string>{"bash", "-c", "ls | wc"});
  const auto shell = api::to_request(
      order_of({{"command", "cd /"}, {"shell", "default"}, {"onBusy", "fail"}}), "user", "bash");
  CHECK(shell.argv.strings() == std::vector<std::string>{"cd /"});
  CHECK(shell.policy.shell == wire::ShellPolicy{"default", true, false});
}

TEST_CASE("only a bare command takes the context's shell", "[api]") {
  CHECK(order_of({{"command", "x"}}).takes_default_shell);
  for (const json& body : {json{{"argv", {"x"}}}, json{{"command", "x"}, {"shell", false}},
                           json{{"command", "x"}, {"shell", "other"}},
                           json{{"command", "x"}, {"tty", json::object()}}}) {
    CHECK_FALSE(order_of(body).takes_default_shell);
  }
}

TEST_CASE("times, terminal and input are taken over", "[api]") {
  const auto order = order_of({{"argv", {"x"}},
                               {"timeoutMs", 5},
                               {"graceMs", 6},
                               {"tty", {{"cols", 100}, {"rows", 30}}},
                               {"env", {{"A", "1=2"}}},
                               {"cwd", "/tmp"}});
  const auto request = api::to_request(order, "user", "sh");
  CHECK(request.policy.time_limit_ms == 5);
  CHECK(request.policy.kill_grace_ms == 6);
  CHECK(request.winsize == wire::Winsize{30, 100, 0, 0});
  CHECK(request.terminal_fds == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(request.fd_numbers.empty());
  CHECK(request.env.strings() == std::vector<std::string>{"A=1=2"});
  CHECK(order_of({{"argv", {"x"}}, {"stdin", {{"base64", "AP8="}}}}).stdin_bytes ==
        std::string("\0\xff", 2));
  CHECK(order_of({{"argv", {"x"}}, {"stdin", "open"}}).stdin_kind == api::ExecOrder::Stdin::open);
  // One that is left at once is not killed by that.
  CHECK_FALSE(order_of({{"argv", {"x"}}, {"yieldMs", 0}}).kill_on_disconnect);
}

TEST_CASE("what is wrong with an order is told by its place", "[api]") {
  struct Case {
    json body;
    const char* pointer;
  };
  const std::string nul("a\0b", 3);
  const std::vector<Case> cases = {
      {json::object(), ""},
      {{{"argv", {"a"}}, {"command", "b"}}, ""},
      {{{"argv", json::array()}}, "/argv"},
      {{{"argv", {""}}}, "/argv"},
      {{{"argv", {"a", 1}}}, "/argv"},
      {{{"argv", {"a", nul}}}, "/argv"},
      {{{"command", nul}}, "/command"},
      {{{"argv", {"a"}}, {"shell", "x"}}, "/shell"},
      {{{"command", "a"}, {"shell", true}}, "/shell"},
      {{{"command", "a"}, {"shell", "../x"}}, "/shell"},
      {{{"argv", {"a"}}, {"env", {{"A=B", "1"}}}}, "/env"},
      {{{"argv", {"a"}}, {"env", {{"A", 1}}}}, "/env"},
      {{{"argv", {"a"}}, {"cwd", "relative"}}, "/cwd"},
      {{{"argv", {"a"}}, {"stdin", "closed"}}, "/stdin"},
      {{{"argv", {"a"}}, {"stdin", {{"base64", "x"}}}}, "/stdin/base64"},
      {{{"argv", {"a"}}, {"stdin", {{"base64", ""}, {"text", ""}}}}, "/stdin"},
      {{{"argv", {"a"}}, {"tty", {{"cols", 0}}}}, "/tty/cols"},
      {{{"argv", {"a"}}, {"tty", json::object()}, {"stdin", {{"text", "x"}}}}, "/tty"},
      {{{"argv", {"a"}}, {"timeoutMs", -1}}, "/timeoutMs"},
      {{{"argv", {"a"}}, {"timeoutMs", 1.5}}, "/timeoutMs"},
      {{{"argv", {"a"}}, {"output", {{"encoding", "latin1"}}}}, "/output/encoding"},
      {{{"argv", {"a"}}, {"output", {{"maxBytes", 1ull << 40}}}}, "/output/maxBytes"},
      {{{"argv", {"a"}}, {"timeout", 3}}, "/timeout"},
      {{{"argv", {"a"}}, {"a/b~c", 3}}, "/a~1b~0c"},
  };
  for (const auto& [body, pointer] : cases) {
    CAPTURE(body.dump());
    const auto order = read_exec_order(body);
    REQUIRE_FALSE(order);
    CHECK(order.error().code == "invalid-request");
    REQUIRE_FALSE(order.error().errors.empty());
    CHECK(order.error().errors.front().pointer == pointer);
  }
}
