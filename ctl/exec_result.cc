// The result of an exec as JSON (docs/SHELLS.md).

#include <string.h>

#include <nlohmann/json.hpp>

#include "base/wait_status.h"
#include "ctl/base64.h"
#include "ctl/print.h"
#include "ctl/shell.h"

namespace ctl {

using nlohmann::json;

namespace {

/// As text if it is UTF-8, else as base64.
void add_output(json& result, const std::string& name, const std::string& bytes) {
  bool is_text = true;
  try {
    (void)json(bytes).dump();
  } catch (const json::exception&) {
    is_text = false;
  }
  result[name] = is_text ? bytes : to_base64(bytes);
  result[name + "Encoding"] = is_text ? "utf-8" : "base64";
  result[name + "Bytes"] = bytes.size();
}

json shell_json(const wire::ShellResult& shell) {
  constexpr const char* kEngines[] = {"", "bash-builtin", "bash-loop", "sh"};
  constexpr const char* kEvents[] = {"", "recovered", "lost"};
  json result = {{"engine", kEngines[static_cast<std::size_t>(shell.engine)]},
                 {"event", nullptr},
                 {"noCheckpoint", nullptr},
                 {"cwd", shell.cwd},
                 {"envChanged", shell.changed_env.strings()},
                 {"background", shell.background}};
  if (shell.event != wire::ShellEvent::none) {
    result["event"] = kEvents[static_cast<std::size_t>(shell.event)];
  }
  if (!shell.no_checkpoint.empty()) result["noCheckpoint"] = shell.no_checkpoint;
  return result;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : std::to_string(number);
}

}  // namespace

void print_result(const ExecOptions& options, const Captured& captured, std::uint64_t duration_ms) {
  const wire::Exited& exited = *captured.exited();
  const base::WaitStatus status(exited.wait_status);
  const auto signal = status.term_signal();
  json result = {{"context", options.context},
                 {"success", exited.wait_status == 0 && !exited.timed_out},
                 {"exitCode", nullptr},
                 {"signal", nullptr},
                 {"timedOut", exited.timed_out},
                 {"durationMs", duration_ms},
                 {"usage",
                  {{"userMs", exited.user_us / 1000},
                   {"systemMs", exited.system_us / 1000},
                   {"maxRssBytes", exited.max_rss_kib * 1024}}},
                 {"shell", nullptr}};
  if (signal) result["signal"] = signal_name(*signal);
  if (const auto code = status.exit_code()) result["exitCode"] = *code;
  if (exited.shell.engine != wire::ShellEngine::none) result["shell"] = shell_json(exited.shell);
  add_output(result, "stdout", captured.out);
  add_output(result, "stderr", captured.err);
  print_json(result);
}

}  // namespace ctl
