#include "api/exec_order.h"

#include <algorithm>

#include "api/text.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestCommand = 4u << 20;
constexpr std::uint64_t kLongestTime = 30ull * 24 * 3600 * 1000;  // 30 days
constexpr std::size_t kLongestTerminalOrder = 32u << 10;          // the daemon keeps it
constexpr const char* kShellNames = "[a-z][a-z0-9_-]*, at most 32 bytes";

/// `otherwise`: the program if none is named; empty: that is wrong.
void read_program(Fields& fields, ExecOrder& order, const std::string& otherwise = {}) {
  if (auto command = fields.text("command", kLongestCommand)) order.command = std::move(*command);
  if (auto argv = fields.texts("argv")) order.argv = std::move(*argv);
  if (!otherwise.empty() && !fields.has("command") && !fields.has("argv")) {
    order.argv = {otherwise};
  } else if (fields.has("command") == fields.has("argv")) {
    fields.fail("", "expected either 'command' or 'argv'");
  } else if (fields.has("argv") && (order.argv.empty() || order.argv.front().empty())) {
    fields.fail("argv", "expected a program and its arguments");
  }
}

void read_shell(Fields& fields, ExecOrder& order) {
  const json* shell = fields.find("shell");
  order.takes_default_shell = shell == nullptr && fields.has("command") && !fields.has("tty");
  if (shell == nullptr || *shell == false) return;
  if (!shell->is_string() || !is_shell_name(shell->get<std::string>())) {
    return fields.fail(
        "shell", std::string("expected false or the name of a persistent shell, ") + kShellNames);
  }
  if (fields.has("argv")) return fields.fail("shell", "a shell takes 'command', not 'argv'");
  order.shell = shell->get<std::string>();
}

void read_env(Fields& fields, ExecOrder& order) {
  const json* env = fields.find("env");
  if (env == nullptr) return;
  if (!env->is_object()) return fields.fail("env", "expected an object of strings");
  for (const auto& [name, value] : env->items()) {
    const bool is_name = !name.empty() && name.find('=') == std::string::npos &&
                         name.find('\0') == std::string::npos;
    const bool is_value =
        value.is_string() && value.get_ref<const std::string&>().find('\0') == std::string::npos;
    if (!is_name || !is_value) {
      return fields.fail("env", "expected names without '=' and strings, both without NUL");
    }
    order.env.push_back(name + "=" + value.get<std::string>());
  }
}

void read_stdin(Fields& fields, ExecOrder& order) {
  const json* input = fields.find("stdin");
  if (input == nullptr) return;
  if (*input == "open") {
    order.stdin_kind = ExecOrder::Stdin::open;
    return;
  }
  if (!input->is_object())
    return fields.fail("stdin", R"(expected "open", {"text"} or {"base64"})");
  Fields part(*input, "/stdin");
  order.stdin_kind = ExecOrder::Stdin::bytes;
  const json* text = part.find("text");  // may hold NUL
  if (text != nullptr && text->is_string()) order.stdin_bytes = text->get<std::string>();
  if (text != nullptr && !text->is_string()) part.fail("text", "expected a string");
  if (const auto coded = part.text("base64", kLongestCommand)) {
    auto bytes = from_base64(*coded);
    if (!bytes) part.fail("base64", "expected base64 with padding (RFC 4648)");
    if (bytes) order.stdin_bytes = std::move(*bytes);
  }
  if ((text != nullptr) == part.has("base64")) part.fail("", "expected either 'text' or 'base64'");
  fields.take_errors(part);
}

wire::Winsize read_size(Fields& fields) {
  const auto columns = fields.number("cols", 1, 4096);
  const auto rows = fields.number("rows", 1, 4096);
  return {static_cast<std::uint16_t>(rows.value_or(24)),
          static_cast<std::uint16_t>(columns.value_or(80)), 0, 0};
}

void read_terminal(Fields& fields, ExecOrder& order) {
  const json* tty = fields.find("tty");
  if (tty == nullptr) return;
  if (!tty->is_object()) return fields.fail("tty", "expected {cols, rows}");
  Fields part(*tty, "/tty");
  order.terminal = read_size(part);
  fields.take_errors(part);
  if (order.stdin_kind == ExecOrder::Stdin::bytes) {
    fields.fail("tty", "input for a terminal is written to it: leave 'stdin' out");
  }
  if (!order.shell.empty()) fields.fail("tty", "a persistent shell has no terminal");
}

void read_times(Fields& fields, ExecOrder& order) {
  order.timeout_ms = fields.number("timeoutMs", 1, kLongestTime).value_or(0);
  order.grace_ms = fields.number("graceMs", 0, kLongestTime).value_or(order.grace_ms);
  order.yield_ms = fields.number("yieldMs", 0, kLongestTime);
}

void read_cwd(Fields& fields, ExecOrder& order) {
  auto cwd = fields.text("cwd");
  if (!cwd) return;
  order.cwd = std::move(*cwd);
  if (!order.cwd.starts_with('/')) fields.fail("cwd", "expected an absolute path");
}

void read_output(Fields& fields, ExecOrder& order) {
  const json* output = fields.find("output");
  if (output == nullptr) return;
  if (!output->is_object()) return fields.fail("output", "expected {encoding, maxBytes}");
  Fields part(*output, "/output");
  const auto encoding = part.word("encoding", {"auto", "utf-8", "base64"});
  if (encoding == "utf-8") order.encoding = Encoding::utf8;
  if (encoding == "base64") order.encoding = Encoding::base64;
  order.max_bytes = part.number("maxBytes", 0, kMostOutput).value_or(order.max_bytes);
  fields.take_errors(part);
}

}  // namespace

bool is_shell_name(const std::string& name) {
  if (name.empty() || name.size() > 32 || name[0] < 'a' || name[0] > 'z') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

Checked<ExecOrder> read_exec_order(const json& body) {
  ExecOrder order;
  Fields fields(body);
  read_program(fields, order);
  read_shell(fields, order);
  read_env(fields, order);
  read_stdin(fields, order);
  read_terminal(fields, order);
  read_times(fields, order);
  read_output(fields, order);
  read_cwd(fields, order);
  order.fail_if_busy = fields.word("onBusy", {"queue", "fail"}) == "fail";
  order.kill_on_disconnect = fields.word("onDisconnect", {"kill", "detach"}) != "detach";
  order.waits_for_reader = fields.word("slowReader", {"block", "skip"}) != "skip";
  if (fields.has("yieldMs"))
    order.kill_on_disconnect = order.kill_on_disconnect && *order.yield_ms > 0;
  if (auto wrong = fields.done()) return tl::unexpected<Problem>(std::move(*wrong));
  return order;
}

Checked<TerminalOrder> read_terminal_order(const json& body, const std::string& new_shell) {
  TerminalOrder order;
  Fields fields(body);
  read_program(fields, order.exec, new_shell);
  read_env(fields, order.exec);
  read_cwd(fields, order.exec);
  order.exec.terminal = read_size(fields);
  order.exec.timeout_ms = fields.number("timeoutMs", 1, kLongestTime).value_or(0);
  order.exec.grace_ms = fields.number("graceMs", 0, kLongestTime).value_or(order.exec.grace_ms);
  order.exec.max_bytes =
      fields.number("scrollbackBytes", 0, kMostOutput).value_or(order.exec.max_bytes);
  order.idle_ms = fields.number("idleTimeoutMs", 0, kLongestTime).value_or(order.idle_ms);
  order.exec.kill_on_disconnect = false;
  order.exec.waits_for_reader = false;
  order.exec.terminal_order = to_text(body);
  if (order.exec.terminal_order.size() > kLongestTerminalOrder) fields.fail("", "it is too long");
  if (auto wrong = fields.done()) return tl::unexpected<Problem>(std::move(*wrong));
  const auto& env = order.exec.env;
  const bool has_term = std::any_of(
      env.begin(), env.end(), [](const std::string& entry) { return entry.starts_with("TERM="); });
  if (!has_term) order.exec.env.emplace_back("TERM=xterm-256color");
  return order;
}

wire::ExecRequest to_request(const ExecOrder& order, const std::string& context,
                             const std::string& new_shell) {
  wire::ExecRequest request;
  if (!order.shell.empty()) {
    request.path = "shell";
    request.argv.add(order.command);
    request.policy.shell = {order.shell, order.fail_if_busy, false};
  } else if (!order.argv.empty()) {
    request.path = order.argv.front();
    for (const auto& word : order.argv) request.argv.add(word);
  } else {
    request.path = new_shell;
    for (const auto& word : {new_shell, std::string("-c"), order.command}) request.argv.add(word);
  }
  for (const auto& entry : order.env) request.env.add(entry);
  request.cwd = order.cwd;
  request.search_path = true;
  request.state.session_leader = !order.terminal;
  request.policy.context = context;
  request.policy.env = wire::EnvMode::context;
  request.policy.time_limit_ms = order.timeout_ms;
  request.policy.kill_grace_ms = order.grace_ms;
  if (order.terminal) {
    request.tty = wire::TtyMode::fresh;
    request.winsize = *order.terminal;
    request.terminal_fds = {0, 1, 2};
    request.foreground = true;
  } else {
    request.fd_numbers = {0, 1, 2};
  }
  return request;
}

}  // namespace api
