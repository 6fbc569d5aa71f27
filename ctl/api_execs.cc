// Programs that the API runs and keeps: exec --yield, logs, attach, wait.

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iostream>
#include <thread>

#include "base/exit_like.h"
#include "base/file.h"
#include "base/terminal.h"
#include "ctl/api_client.h"
#include "ctl/ask.h"
#include "ctl/base64.h"
#include "ctl/exec_client.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

namespace {

constexpr char kLeave = 0x1d;  // Ctrl-], as telnet has it
constexpr std::size_t kInputBlock = 32u << 10;

std::string path_of(const std::string& exec, const std::string& rest = {}) {
  return "/api/v1/execs/" + exec + rest;
}

bool is_running(const json& exec) {
  const auto status = exec.value("status", "");
  return status == "running" || status == "queued";
}

int signal_number(const std::string& name) {
  for (int number = 1; number < NSIG; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    if (abbreviation != nullptr && name == std::string("SIG") + abbreviation) return number;
  }
  return 0;
}

/// Ends this process as the exec has ended.
[[noreturn]] void end_like(const json& exec) {
  std::cout << std::flush;
  const auto exit_with = [](int code) { base::exit_like(base::WaitStatus(code << 8)); };
  const std::string status = exec.value("status", "");
  if (exec.value("timedOut", false)) {
    complain(exec.value("id", "") + " timed out", 0);
    exit_with(kTimedOut);
  }
  if (status == "lost") {
    complain(exec.value("id", "") + " is lost: its context ended", 0);
    exit_with(kLost);
  }
  if (const auto& error = exec.value("error", json()); error.is_object()) {
    complain(printable(error.value("message", "")), 0);
  }
  if (exec.contains("signal") && exec["signal"].is_string()) {
    base::exit_like(base::WaitStatus(signal_number(exec["signal"].get<std::string>())));
  }
  const auto& code = exec.value("exitCode", json());
  exit_with(code.is_number() ? code.get<int>() : kLost);
  ::_exit(kLost);  // not reached
}

/// Output as bytes, to our own of the same kind.
void print_output(const json& holder, const char* name, int fd) {
  const std::string text = holder.value(name, "");
  const bool is_base64 = holder.value(std::string(name) + "Encoding", "utf-8") == "base64";
  (void)base::write_all(fd, is_base64 ? from_base64(text) : text);
}

/// An event of a stream; true for the last one, which `exec` then is.
bool take_event(const json& event, json& exec) {
  const std::string type = event.value("type", "");
  if (type == "stdout" || type == "stderr") {
    const bool is_text = event.contains("text");
    const auto bytes = is_text ? event.value("text", "") : from_base64(event.value("base64", ""));
    (void)base::write_all(type == "stdout" ? STDOUT_FILENO : STDERR_FILENO, bytes);
  }
  if (type == "notice" && event.value("reason", "") == "skipped") {
    complain("some of its output is no longer kept", 0);
  }
  if (type == "exit" || type == "error") exec = event;
  return type == "exit" || type == "error";
}

/// The events of an exec's output, as they come.
class Output {
 public:
  static std::optional<Output> follow(const Common& common, const std::string& exec) {
    auto answer = ask_api(
        common, {.path = path_of(exec, "/output"), .headers = {"Accept: application/x-ndjson"}});
    if (!answer) return {};
    if (answer->is_error()) return complain_about(*answer), std::nullopt;
    return Output(std::move(*answer));
  }

  int socket() const { return answer_.socket(); }
  bool has_more() const { return answer_.has_more(); }
  /// How it ended, once that is told.
  const json& exec() const { return exec_; }

  /// Prints what comes next; false at the end, good or bad.
  bool take() {
    const auto part = answer_.read_some();
    if (!part || part->empty()) return false;
    lines_ += *part;
    for (auto end = lines_.find('\n'); end != std::string::npos; end = lines_.find('\n')) {
      const json event = json::parse(lines_.substr(0, end), nullptr, false);
      lines_.erase(0, end + 1);
      if (event.is_object() && take_event(event, exec_)) return false;
    }
    return true;
  }

 private:
  explicit Output(HttpAnswer answer) : answer_(std::move(answer)) {}

  HttpAnswer answer_;
  std::string lines_;
  json exec_;
};

[[noreturn]] void end_like(const Output& output, const std::string& exec) {
  if (output.exec().is_object() && output.exec().value("type", "") == "exit") {
    end_like(output.exec());
  }
  complain("the output of " + exec + " was cut off: 'airlock logs' shows it again", 0);
  base::exit_like(base::WaitStatus(kLost << 8));
}

/// This terminal, raw as long as this object lives.
class RawTerminal {
 public:
  explicit RawTerminal(bool is_wanted) {
    if (!is_wanted) return;
    before_ = base::termios_of(STDIN_FILENO);
    if (before_) base::set_termios(STDIN_FILENO, base::to_raw(*before_));
  }
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  void restore() {
    if (before_) base::set_termios(STDIN_FILENO, *before_);
    before_.reset();
  }
  bool is_raw() const { return before_.has_value(); }

 private:
  std::optional<base::Termios> before_;
};

void send_size(const Common& common, const std::string& exec) {
  const auto size = base::winsize_of(STDIN_FILENO);
  if (size.ws_col == 0 || size.ws_row == 0) return;
  auto answer =
      ask_api(common, {.method = "POST",
                       .path = path_of(exec, "/resize"),
                       .headers = {"Content-Type: application/json"},
                       .body = json{{"cols", size.ws_col}, {"rows", size.ws_row}}.dump()});
}

/// What comes from our input goes to the exec's; false when no more will.
bool pass_input(const Common& common, const std::string& exec, bool is_raw, bool& has_left) {
  char block[kInputBlock];
  const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  std::string bytes(block, static_cast<std::size_t>(got));
  if (is_raw && bytes.find(kLeave) != std::string::npos) {
    has_left = true;
    bytes.erase(bytes.find(kLeave));
    if (bytes.empty()) return false;
  }
  const auto answer =
      ask_api(common, {.method = "POST",
                       .path = path_of(exec, got == 0 ? "/stdin?close=true" : "/stdin"),
                       .body = std::move(bytes)});
  return got > 0 && !has_left && answer && !answer->is_error();
}

}  // namespace

int exec_logs(const Common& common, const std::string& exec, bool follow) {
  if (!follow) {
    const auto told = ask_api_for_json(common, {.path = path_of(exec, "/output")});
    if (!told) return 1;
    if (common.json) return print_json(*told), 0;
    print_output(*told, "stdout", STDOUT_FILENO);
    print_output(*told, "stderr", STDERR_FILENO);
    return 0;
  }
  auto output = Output::follow(common, exec);
  if (!output) return 1;
  while (output->take()) {
  }
  const bool is_whole = output->exec().value("type", "") == "exit";
  return is_whole ? 0 : complain("the output of " + exec + " was cut off", 1);
}

int attach(const Common& common, const std::string& exec) {
  const auto found = ask_api_for_json(common, {.path = path_of(exec)});
  if (!found) return 1;
  auto output = Output::follow(common, exec);
  if (!output) return 1;
  const bool has_terminal = found->value("tty", false);
  sigset_t resized;
  sigemptyset(&resized);
  sigaddset(&resized, SIGWINCH);
  ::sigprocmask(SIG_BLOCK, &resized, nullptr);
  const base::UniqueFd sizes(::signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK));
  RawTerminal terminal(has_terminal);
  if (terminal.is_raw()) send_size(common, exec);
  bool has_left = false;
  pollfd watched[] = {
      {output->socket(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {sizes.borrow(), POLLIN, 0}};
  for (bool goes_on = true; goes_on && !has_left;) {
    if (!output->has_more() && ::poll(watched, 3, -1) < 0 && errno != EINTR) break;
    if (watched[2].revents != 0) {
      signalfd_siginfo info;
      while (::read(sizes.borrow(), &info, sizeof info) > 0) {
      }
      if (terminal.is_raw()) send_size(common, exec);
    }
    if (watched[1].revents != 0 && !pass_input(common, exec, terminal.is_raw(), has_left)) {
      watched[1].fd = -1;
    }
    if (output->has_more() || watched[0].revents != 0) goes_on = output->take();
  }
  terminal.restore();
  if (!has_left) end_like(*output, exec);
  std::cerr << "\nairlock: left " << exec << ", which goes on\n";
  return 0;
}

namespace {

std::optional<json> await_exec(const Common& common, const std::string& exec) {
  for (;;) {
    auto told = ask_api_for_json(common, {.path = path_of(exec, "?waitMs=600000")});
    if (!told || !is_running(*told)) return told;
  }
}

/// Until nothing runs in the context but the hosts of its shells.
bool await_idle(const Common& common, const std::string& context) {
  constexpr std::chrono::milliseconds kPause{50};
  for (;; std::this_thread::sleep_for(kPause)) {
    const auto answer = ask(common, "jobs", {{"context", context}});
    if (!answer) return false;
    bool is_idle = true;
    for (const auto& job : (*answer)["jobs"]) {
      is_idle &= job.value("program", "").ends_with("/airlock-shell");
    }
    if (is_idle) return true;
  }
}

}  // namespace

int wait_for(const Common& common, const std::vector<std::string>& words) {
  json last;
  json all = json::array();
  for (const auto& word : words) {
    last = nullptr;
    if (!is_exec_id(word)) {
      if (!await_idle(common, word)) return 1;
      continue;
    }
    auto ended = await_exec(common, word);
    if (!ended) return 1;
    all.push_back(*ended);
    last = std::move(*ended);
  }
  if (common.json) print_json(all);
  if (last.is_object()) end_like(last);
  return 0;
}

int exec_yielding(const Common& common, const ExecOptions& options, const std::string& shell) {
  const auto yield = parse_duration(options.yield_after);
  if ((yield == 0 && options.yield_after.find_first_not_of("0smh") != std::string::npos) ||
      options.terminal) {
    return complain(options.terminal
                        ? "--yield and -t: 'airlock attach' takes up what --yield has left"
                        : "--yield " + options.yield_after + ": expected e.g. 500ms, 5s or 2m",
                    kUsage);
  }
  json body = {{"yieldMs", yield}, {"onDisconnect", "detach"}};
  if (options.command.empty()) {
    body["command"] = options.text;
    body["shell"] = shell.empty() ? json(false) : json(shell);
  } else {
    body["argv"] = options.command;
  }
  if (!options.cwd.empty()) body["cwd"] = options.cwd;
  if (options.interactive) body["stdin"] = "open";
  if (!options.on_busy.empty()) body["onBusy"] = options.on_busy;
  if (!options.timeout.empty()) body["timeoutMs"] = parse_duration(options.timeout);
  if (!options.grace.empty()) body["graceMs"] = parse_duration(options.grace);
  for (const auto& entry : options.env) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos)
      return complain("-e " + entry + ": expected NAME=value", kUsage);
    body["env"][entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const auto told =
      ask_api_for_json(common, {.method = "POST",
                                .path = "/api/v1/contexts/" + options.context + "/exec",
                                .headers = {"Content-Type: application/json"},
                                .body = body.dump(-1, ' ', false, json::error_handler_t::replace)});
  if (!told) return kRefused;
  if (common.json) {
    print_json(*told);
  } else {
    print_output(*told, "stdout", STDOUT_FILENO);
    print_output(*told, "stderr", STDERR_FILENO);
  }
  if (!is_running(*told)) end_like(*told);
  const std::string id = told->value("id", "");
  std::cerr << "airlock: " << id << " goes on; 'airlock logs -f', 'attach' and 'wait' take it up\n";
  return 0;
}

}  // namespace ctl
