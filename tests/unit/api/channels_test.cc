#include "api/channels.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/exec_order.h"
#include "api/token_bucket.h"

using namespace std::string_literals;
using api::ClientMessage;
using api::Framing;
using Kind = api::ClientMessage::Kind;

TEST_CASE("A client's message is what its channel says", "[api]") {
  const auto typed = "\0typed\0x"s;
  const auto input = api::read_message(Framing::airlock, typed);
  REQUIRE(input);
  CHECK(input->kind == Kind::input);
  CHECK(input->bytes == "typed\0x"s);
  CHECK(api::read_message(Framing::airlock, "\xff\0"s)->kind == Kind::end_of_input);
  CHECK(api::read_message(Framing::kubernetes, "\xff\1"s)->kind == Kind::nothing);
  const auto resize = api::read_message(Framing::airlock, "\4{\"cols\":80,\"rows\":24}"s);
  REQUIRE(resize);
  CHECK(resize->kind == Kind::resize);
  CHECK(resize->size.columns == 80);
  CHECK(resize->size.rows == 24);
  const auto signal = api::read_message(Framing::airlock, "\5{\"signal\":\"SIGHUP\"}"s);
  REQUIRE(signal);
  CHECK(signal->signal == SIGHUP);
  CHECK(signal->scope == wire::KillScope::group);
  CHECK(api::read_message(Framing::airlock, "\5{\"signal\":9,\"scope\":\"leader\"}"s)->scope ==
        wire::KillScope::process);
}

TEST_CASE("Sizes of Kubernetes have other names, and 0 is not known", "[api]") {
  const auto resize = api::read_message(Framing::kubernetes, "\4{\"Width\":80,\"Height\":24}"s);
  REQUIRE(resize);
  CHECK(resize->size.columns == 80);
  CHECK(api::read_message(Framing::kubernetes, "\4{\"Width\":0,\"Height\":0}"s)->kind ==
        Kind::nothing);
}

TEST_CASE("What is no message is refused", "[api]") {
  const auto framing = GENERATE(Framing::airlock, Framing::kubernetes);
  for (const auto& wrong : {""s, "\1x"s, "\2x"s, "\3x"s, "\7x"s, "\xff"s, "\xff\0\0"s, "\4"s,
                            "\4{"s, "\4[]"s, "\4[[[[[[[["s, "\5{\"signal\":0}"s,
                            "\5{\"signal\":\"NO\"}"s, "\4" + std::string(2000, ' ') + "{}"}) {
    CAPTURE(wrong);
    const auto read = api::read_message(framing, wrong);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == EBADMSG);
  }
  CHECK_FALSE(api::read_message(framing, std::string(api::kLongestMessage + 1, '\0')));
  CHECK(api::read_message(framing, std::string(api::kLongestMessage, '\0')));
  CHECK_FALSE(api::read_message(Framing::airlock, "\4{\"cols\":0,\"rows\":1}"s));
  CHECK_FALSE(api::read_message(Framing::kubernetes, "\5{\"signal\":9}"s));
}

TEST_CASE("Output tells its offset in our framing only", "[api]") {
  CHECK(api::output_message(Framing::airlock, api::Channel::err, 0x0102, "x") ==
        "\2\0\0\0\0\0\0\1\2x"s);
  CHECK(api::output_message(Framing::kubernetes, api::Channel::out, 7, "x") == "\1x");
}

TEST_CASE("Kubernetes is told an end in its own words", "[api]") {
  api::ExecFacts facts;
  facts.exited.emplace();
  CHECK(api::kubernetes_status(facts)["status"] == "Success");
  facts.exited->wait_status = 3 << 8;
  CHECK(api::kubernetes_status(facts)["details"]["causes"][0]["message"] == "3");
  facts.exited->wait_status = SIGKILL;
  CHECK(api::kubernetes_status(facts)["details"]["causes"][0]["message"] == "137");
  facts.exited.reset();
  facts.is_lost = true;
  CHECK(api::kubernetes_status(facts)["reason"] == "InternalError");
}

TEST_CASE("The first subprotocol we speak is taken, and a token is none", "[api]") {
  const auto read = api::read_subprotocols(
      "x, base64url.bearer.authorization.k8s.io.aGVsbG8_aGVsbG8, v5.channel.k8s.io,airlock.v1");
  REQUIRE(read.framing);
  CHECK(*read.framing == Framing::kubernetes);
  CHECK(read.name == "v5.channel.k8s.io");
  CHECK(read.secret == "hello?hello");
  CHECK_FALSE(api::read_subprotocols("").framing);
  CHECK(api::read_subprotocols("base64url.bearer.authorization.k8s.io.!").secret.empty());
}

TEST_CASE("A terminal is an exec with defaults", "[api]") {
  const auto plain = api::read_terminal_order(nlohmann::json::object(), "bash");
  REQUIRE(plain);
  CHECK(plain->exec.argv == std::vector<std::string>{"bash"});
  CHECK(plain->exec.env == std::vector<std::string>{"TERM=xterm-256color"});
  CHECK(plain->exec.terminal->columns == 80);
  CHECK_FALSE(plain->exec.kill_on_disconnect);
  const auto other = api::read_terminal_order(
      {{"command", "top"}, {"env", {{"TERM", "vt100"}}}, {"idleTimeoutMs", 0}}, "bash");
  REQUIRE(other);
  CHECK(other->exec.argv.empty());
  CHECK(other->exec.env == std::vector<std::string>{"TERM=vt100"});
  CHECK(other->idle_ms == 0);
  for (const nlohmann::json& wrong :
       {nlohmann::json{{"argv", {"a"}}, {"command", "b"}}, nlohmann::json{{"stdin", "open"}},
        nlohmann::json{{"cols", 5000}}, nlohmann::json{{"command", std::string(40000, 'x')}}}) {
    CHECK_FALSE(api::read_terminal_order(wrong, "bash"));
  }
}

TEST_CASE("A token bucket lets a burst through and then so much in a second", "[api]") {
  using namespace std::chrono_literals;
  const auto begin = api::TokenBucket::Clock::now();
  api::TokenBucket bucket(100, 50);
  CHECK(bucket.take(50, begin) == 0ms);
  const auto delay = bucket.take(100, begin);
  CHECK(delay >= 1000ms);
  CHECK(delay <= 1001ms);
  CHECK(bucket.take(0, begin + delay) == 0ms);
  CHECK(bucket.take(50, begin + 1h) == 0ms);
  CHECK(bucket.take(1, begin + 1h) > 0ms);
}
