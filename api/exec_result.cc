#include "api/exec_result.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include "api/http.h"
#include "api/text.h"
#include "base/wait_status.h"
#include "wire/codec.h"

namespace api {

using nlohmann::json;

ExecFacts facts_of(const ExecOrder& order, std::string id, std::string context,
                   std::int64_t now_ms) {
  ExecFacts facts;
  facts.id = std::move(id);
  facts.context = std::move(context);
  facts.command = order.command.substr(0, kMostShown);
  std::size_t shown = 0;
  for (const auto& word : order.argv) {
    shown += word.size() + 1;
    if (shown > kMostShown) break;
    facts.argv.push_back(word);
  }
  facts.shell = order.shell;
  facts.once_name = order.once_name;
  facts.once_hash = order.once_hash;
  facts.has_terminal = order.terminal.has_value();
  facts.max_bytes = order.max_bytes;
  facts.started_ms = now_ms;
  facts.terminal = order.terminal_id;
  facts.terminal_order = order.terminal_order;
  return facts;
}

namespace {

template <class Message>
json coded(const std::optional<Message>& message) {
  return message ? json(to_base64(wire::encode(*message))) : json();
}

template <class Message>
void decode_into(const json& value, std::optional<Message>& message) {
  if (!value.is_string()) return;
  const auto bytes = from_base64(value.get<std::string>());
  if (!bytes) return;
  if (auto decoded = wire::decode<Message>(*bytes)) message = std::move(*decoded);
}

}  // namespace

std::string to_note(const ExecFacts& facts) {
  return to_text({{"id", facts.id},
                  {"context", facts.context},
                  {"command", facts.command},
                  {"argv", facts.argv},
                  {"shell", facts.shell},
                  {"onceName", facts.once_name},
                  {"onceHash", facts.once_hash},
                  {"hasTerminal", facts.has_terminal},
                  {"maxBytes", facts.max_bytes},
                  {"startedMs", facts.started_ms},
                  {"endedMs", facts.ended_ms},
                  {"begunMs", facts.begun_ms},
                  {"pid", facts.pid},
                  {"job", facts.job},
                  {"isQueued", facts.is_queued},
                  {"exited", coded(facts.exited)},
                  {"notStarted", coded(facts.not_started)},
                  {"isLost", facts.is_lost},
                  {"terminal", facts.terminal},
                  {"terminalOrder", facts.terminal_order}});
}

std::optional<ExecFacts> read_note(const std::string& note) {
  const json body = json::parse(note, nullptr, false);
  if (!body.is_object() || !body.contains("id")) return std::nullopt;
  try {
    ExecFacts facts;
    facts.id = body.at("id").get<std::string>();
    facts.context = body.at("context").get<std::string>();
    facts.command = body.at("command").get<std::string>();
    facts.argv = body.at("argv").get<std::vector<std::string>>();
    facts.shell = body.at("shell").get<std::string>();
    facts.once_name = body.at("onceName").get<std::string>();
    facts.once_hash = body.at("onceHash").get<std::string>();
    facts.has_terminal = body.at("hasTerminal").get<bool>();
    facts.max_bytes = body.at("maxBytes").get<std::uint64_t>();
    facts.started_ms = body.at("startedMs").get<std::int64_t>();
    facts.ended_ms = body.at("endedMs").get<std::int64_t>();
    facts.begun_ms = body.at("begunMs").get<std::int64_t>();
    facts.pid = body.at("pid").get<int>();
    facts.job = body.at("job").get<std::uint64_t>();
    facts.is_queued = body.at("isQueued").get<bool>();
    decode_into(body.at("exited"), facts.exited);
    decode_into(body.at("notStarted"), facts.not_started);
    facts.is_lost = body.at("isLost").get<bool>();
    facts.terminal = body.value("terminal", "");
    facts.terminal_order = body.value("terminalOrder", "");
    return facts;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string to_time(std::int64_t ms) {
  const time_t seconds = static_cast<time_t>(ms / 1000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t size = ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string rest = std::to_string(1000 + ms % 1000).substr(1);
  return std::string(text, size) + "." + rest + "Z";
}

std::optional<int> exit_status(const ExecFacts& facts) {
  if (facts.not_started) return facts.not_started->exit_code;
  if (!facts.exited) return std::nullopt;
  const base::WaitStatus status(facts.exited->wait_status);
  if (const auto signal = status.term_signal()) return 128 + *signal;
  return status.exit_code();
}

const char* status_of(const ExecFacts& facts) {
  if (facts.not_started) return "failed";
  if (facts.is_lost) return "lost";
  if (!facts.exited) return facts.is_queued ? "queued" : "running";
  if (facts.exited->timed_out) return "timed_out";
  return base::WaitStatus(facts.exited->wait_status).term_signal() ? "signaled" : "exited";
}

namespace {

std::string name_of_signal(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? "SIG" + std::string(name) : std::to_string(number);
}

void add_ending(json& result, const ExecFacts& facts) {
  result["exitCode"] = nullptr;
  result["signal"] = nullptr;
  const auto as_shell = exit_status(facts);
  result["exitStatus"] = as_shell ? json(*as_shell) : json();
  result["timedOut"] = facts.exited && facts.exited->timed_out;
  if (facts.not_started) {
    const auto& refusal = *facts.not_started;
    const char* name = refusal.error != 0 ? ::strerrorname_np(refusal.error) : nullptr;
    result["exitCode"] = refusal.exit_code;
    result["error"] = {{"code", "exec-failed-to-start"},
                       {"errno", name != nullptr ? json(name) : json()},
                       {"message", refusal.message}};
  }
  if (!facts.exited) return;
  const base::WaitStatus status(facts.exited->wait_status);
  if (const auto code = status.exit_code()) result["exitCode"] = *code;
  if (const auto signal = status.term_signal()) result["signal"] = name_of_signal(*signal);
  result["usage"] = {{"userMs", facts.exited->user_us / 1000},
                     {"systemMs", facts.exited->system_us / 1000},
                     {"maxRssBytes", facts.exited->max_rss_kib * 1024}};
}

void add_shell(json& result, const ExecFacts& facts) {
  if (facts.shell.empty() || !facts.exited) return;
  constexpr const char* kEvents[] = {nullptr, "recovered", "lost"};
  const auto& shell = facts.exited->shell;
  const char* event = kEvents[static_cast<std::size_t>(shell.event)];
  result["shellEvent"] = event != nullptr ? json(event) : json();
  result["cwd"] = shell.cwd.empty() ? json() : json(shell.cwd);
  result["envChanged"] = shell.changed_env.strings();
  result["background"] = json::array();
  for (const auto pid : shell.background) result["background"].push_back({{"pid", pid}});
  if (!shell.no_checkpoint.empty()) result["noCheckpoint"] = shell.no_checkpoint;
}

}  // namespace

json to_json(const ExecFacts& facts, std::int64_t now_ms) {
  const bool has_ended = facts.has_ended();
  const std::int64_t end = has_ended ? facts.ended_ms : now_ms;
  json result = {{"id", facts.id},
                 {"context", facts.context},
                 {"command", facts.argv.empty() ? json(facts.command) : json()},
                 {"argv", facts.argv.empty() ? json() : json(facts.argv)},
                 {"shell", facts.shell.empty() ? json(false) : json(facts.shell)},
                 {"tty", facts.has_terminal},
                 {"status", status_of(facts)},
                 {"pid", facts.pid != 0 ? json(facts.pid) : json()},
                 {"startedAt", to_time(facts.started_ms)},
                 {"endedAt", has_ended ? json(to_time(facts.ended_ms)) : json()},
                 {"durationMs", std::max<std::int64_t>(0, end - facts.started_ms)}};
  // What it has waited for other commands of its shell is part of its duration.
  if (!facts.shell.empty()) {
    const std::int64_t begun = facts.begun_ms != 0 ? facts.begun_ms : end;
    result["queuedMs"] = std::max<std::int64_t>(0, begun - facts.started_ms);
  }
  add_ending(result, facts);
  result["success"] = facts.exited && result["exitCode"] == 0;
  add_shell(result, facts);
  if (!facts.terminal.empty()) result["terminal"] = facts.terminal;
  return result;
}

void add_capture(json& result, const std::string& stream, Capture capture, Encoding encoding) {
  std::string& bytes = capture.bytes;
  // Characters that the gap has cut in two are left out, too.
  if (capture.omitted > 0 && encoding != Encoding::base64) {
    const auto tail = std::string_view(bytes).substr(capture.gap_at);
    const auto after = orphaned_head(tail);
    const auto before = incomplete_tail(std::string_view(bytes).substr(0, capture.gap_at));
    bytes.erase(capture.gap_at - before, before + after);
    capture.gap_at -= before;
    capture.omitted += before + after;
  }
  const bool is_text =
      encoding == Encoding::utf8 || (encoding == Encoding::automatic && is_utf8(bytes));
  result[stream + "Bytes"] = capture.total;
  result[stream + "Truncated"] = capture.omitted > 0;
  result[stream + "Encoding"] = is_text ? "utf-8" : "base64";
  if (capture.omitted > 0) {
    result[stream + "Omitted"] = {{"offset", capture.gap_at}, {"bytes", capture.omitted}};
  }
  result[stream] = is_text ? std::move(bytes) : to_base64(bytes);
}

}  // namespace api
