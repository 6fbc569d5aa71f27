#include "api/exec_result.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/exec_stream.h"

using api::Encoding;
using nlohmann::json;

namespace {

api::ExecFacts ended(int wait_status) {
  api::ExecFacts facts;
  facts.id = "exec_1";
  facts.context = "user";
  facts.argv = {"true"};
  facts.started_ms = 1'000'000'000'123;
  facts.ended_ms = 1'000'000'000'623;
  facts.exited = wire::Exited{};
  facts.exited->wait_status = wait_status;
  return facts;
}

json captured(std::string bytes, Encoding encoding, std::size_t gap_at = 0,
              std::uint64_t omitted = 0) {
  json result;
  const auto total = bytes.size() + omitted;
  api::add_capture(result, "stdout", {std::move(bytes), total, gap_at, omitted}, encoding);
  return result;
}

}  // namespace

TEST_CASE("exit code, signal and time limit are three things", "[api]") {
  const auto exited = api::to_json(ended(3 << 8), 0);
  CHECK(exited["exitCode"] == 3);
  CHECK(exited["signal"].is_null());
  CHECK(exited["status"] == "exited");
  CHECK(exited["durationMs"] == 500);
  CHECK(exited["startedAt"] == "2001-09-09T01:46:40.123Z");
  const auto killed = api::to_json(ended(9), 0);
  CHECK(killed["exitCode"].is_null());
  CHECK(killed["signal"] == "SIGKILL");
  CHECK(killed["exitStatus"] == 137);
  auto late = ended(15);
  late.exited->timed_out = true;
  CHECK(api::to_json(late, 0)["status"] == "timed_out");
  CHECK(api::to_json(late, 0)["timedOut"] == true);
  api::ExecFacts running;
  running.started_ms = 100;
  CHECK(api::to_json(running, 150)["status"] == "running");
  CHECK(api::to_json(running, 150)["durationMs"] == 50);
}

TEST_CASE("what never started says why", "[api]") {
  api::ExecFacts facts;
  facts.not_started = wire::NotStarted{127, ENOENT, "x: not found", false};
  const auto told = api::to_json(facts, 0);
  CHECK(told["status"] == "failed");
  CHECK(told["exitCode"] == 127);
  CHECK(told["error"]["errno"] == "ENOENT");
  CHECK(told["success"] == false);
}

TEST_CASE("a note is read as what it was made of", "[api]") {
  auto facts = ended(256);
  facts.exited->shell.cwd = "/tmp/\xff";
  facts.shell = "default";
  facts.pid = 7;
  const auto read = api::read_note(api::to_note(facts));
  REQUIRE(read);
  CHECK(read->exited == facts.exited);
  CHECK(read->argv == facts.argv);
  CHECK(read->pid == 7);
  for (const auto* bad : {"", "[]", "{}", R"({"id": 7})", R"({"id": "x"})"})
    CHECK_FALSE(api::read_note(bad));
}

TEST_CASE("output is text if it is UTF-8, else base64, and says which", "[api]") {
  CHECK(captured("a\nb", Encoding::automatic)["stdout"] == "a\nb");
  CHECK(captured("a\xff", Encoding::automatic)["stdout"] == "Yf8=");
  CHECK(captured("a\xff", Encoding::automatic)["stdoutEncoding"] == "base64");
  CHECK(captured("a", Encoding::base64)["stdout"] == "YQ==");
}

TEST_CASE("a gap in the output cuts no character in two", "[api]") {
  const auto told = captured(
      "a\xc3\xa9\xc3"
      "\xa9z",
      Encoding::automatic, 4, 100);
  CHECK(told["stdout"] == "a\xc3\xa9z");
  CHECK(told["stdoutOmitted"] == json{{"offset", 3}, {"bytes", 102}});
  CHECK(told["stdoutBytes"] == 106);
  CHECK(told["stdoutTruncated"] == true);
}

TEST_CASE("cursors go both ways", "[api]") {
  CHECK(api::parse_cursor(api::cursor_text({12, 3})) == api::Cursor{12, 3});
  for (const auto* bad :
       {"", "o1", "o1.e", "o.e1", "o1.e2x", "o-1.e2", "e1.o2", "o99999999999999999999.e0"}) {
    CAPTURE(bad);
    CHECK_FALSE(api::parse_cursor(bad));
  }
}

TEST_CASE("events are one line of JSON, or as Server-Sent Events want it", "[api]") {
  std::string lines;
  api::append_event(lines, api::EventFormat::ndjson, "stdout",
                    api::output_fields("a\nb", Encoding::automatic), "o3.e0");
  CHECK(json::parse(lines) == json{{"type", "stdout"}, {"cursor", "o3.e0"}, {"text", "a\nb"}});
  CHECK(lines.find('\n') == lines.size() - 1);
  std::string sse;
  api::append_event(sse, api::EventFormat::sse, "stdout",
                    api::output_fields("\xff", Encoding::automatic), "o1.e0");
  CHECK(sse == "id: o1.e0\nevent: stdout\ndata: {\"base64\":\"/w==\"}\n\n");
  CHECK(api::accepts("text/html, text/event-stream;q=0.9", "text/event-stream"));
  CHECK_FALSE(api::accepts("text/event-streams", "text/event-stream"));
}
