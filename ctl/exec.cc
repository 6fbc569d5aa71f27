// airlock exec: a program in a context, or a command text in one of its shells. airlock sh.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "base/exit_like.h"
#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exec_client.h"
#include "ctl/shell.h"

namespace ctl {
namespace {

using nlohmann::json;

/// A fresh shell for one text: bash where there is one.
const char* const kFreshShell =
    "command -v bash >/dev/null && exec bash -c \"$0\"; exec sh -c \"$0\"";
const char* const kInteractiveShell = "command -v bash >/dev/null && exec bash -i; exec sh -i";

/// Descriptors of a program: stdin only if asked for, else /dev/null.
std::vector<int> exec_fds(bool interactive) {
  if (!interactive) {
    const base::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(null.borrow(), STDIN_FILENO);
  }
  std::vector<int> fds;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) fds.push_back(fd);
  }
  return fds;
}

int no_daemon(const Common& common, const base::Error& error) {
  return complain("no daemon serves " + common.runtime_dir + " (" + error.message() +
                      "): start one with 'airlock up'",
                  kRefused);
}

/// Of the context: its settings, `-e`, and TERM. False after a complaint.
bool set_env(wire::ExecRequest& request, const std::vector<std::string>& entries) {
  request.env = {};
  if (const char* term = ::getenv("TERM"); term != nullptr) {
    request.env.add(std::string("TERM=") + term);
  }
  for (const auto& entry : entries) {
    if (entry.find('=') == std::string::npos || entry.front() == '=') {
      complain("-e " + entry + ": expected NAME=value", 0);
      return false;
    }
    request.env.add(entry);
  }
  return true;
}

/// False after a complaint.
bool read_duration(const char* option, const std::string& text, std::uint64_t& milliseconds) {
  if (text.empty()) return true;
  milliseconds = parse_duration(text);
  if (milliseconds != 0) return true;
  complain(std::string(option) + " " + text + ": expected e.g. 500ms, 5s or 2m", 0);
  return false;
}

/// The persistent shell for a command text; empty: none. Nothing after a complaint.
std::optional<std::string> shell_for(Client& client, const ExecOptions& options) {
  if (!options.command.empty() || options.no_shell) return "";
  if (options.shell) return *options.shell;
  auto context = client.ask("ctx.inspect", {{"context", options.context}});
  if (context) return (*context)["context"].value("persistent", true) ? "default" : "";
  complain(context.error().message(), 0);
  return {};
}

bool is_wrong(const ExecOptions& options) {
  const bool is_text = options.command.empty();
  std::string why;
  if (options.shell && options.shell->empty()) {
    why = "--shell: expected a name, found an empty one";
  } else if (options.shell && options.no_shell) {
    why = "--shell and --no-shell exclude each other";
  } else if (!is_text && (options.shell || options.no_shell || !options.on_busy.empty())) {
    why = "--shell, --no-shell and --on-busy are for a command text (-c)";
  } else if (options.terminal && options.shell) {
    why = "-t and --shell: a persistent shell has no terminal; 'airlock sh' gives one";
  } else {
    return false;
  }
  complain(why, 0);
  return true;
}

std::optional<wire::ExecRequest> request_for(const ExecOptions& options, const std::string& shell) {
  std::vector<std::string> argv = options.command;
  if (argv.empty() && shell.empty()) argv = {"sh", "-c", kFreshShell, options.text};
  if (argv.empty()) argv = {options.text};
  auto request = make_request(argv, {});
  request.cwd = options.cwd;
  request.policy.context = options.context;
  request.policy.env = wire::EnvMode::context;
  request.policy.shell.name = shell;
  request.policy.shell.fail_if_busy = options.on_busy == "fail";
  request.policy.shell.no_checkpoint = options.no_checkpoint;
  if (!shell.empty()) request.path = "shell '" + shell + "'";
  if (!set_env(request, options.env) ||
      !read_duration("--timeout", options.timeout, request.policy.time_limit_ms) ||
      !read_duration("--grace", options.grace, request.policy.kill_grace_ms)) {
    return {};
  }
  return request;
}

[[noreturn]] void end(const Ending& ending) {
  if (!ending.message.empty()) complain(ending.message, 0);
  base::exit_like(base::WaitStatus(ending.wait_status));
}

[[noreturn]] void run_for_json(int socket, wire::ExecRequest request, const ExecOptions& options) {
  using namespace std::chrono;
  const std::string program = request.path;
  const auto start = steady_clock::now();
  const auto captured = run_captured(socket, std::move(request), options.interactive);
  const auto took = duration_cast<milliseconds>(steady_clock::now() - start).count();
  if (captured.exited() != nullptr) {
    print_result(options, captured, static_cast<std::uint64_t>(took));
    std::cout << std::flush;  // end() is _exit(2) or a signal
  }
  end(ending_of(captured.outcome, program));
}

}  // namespace

int exec(const Common& common, const ExecOptions& options) {
  if (is_wrong(options)) return kUsage;
  auto client = Client::connect(common.runtime_dir);
  if (!client) return no_daemon(common, client.error());
  const auto shell = shell_for(*client, options);
  if (!shell) return kRefused;
  if (!options.yield_after.empty()) return exec_yielding(common, options, *shell);
  if (options.terminal && !shell->empty()) {
    return complain("-t and -c: a persistent shell has no terminal; --no-shell gives the text one",
                    kUsage);
  }
  auto request = request_for(options, *shell);
  if (!request) return kUsage;
  const std::string program = request->path;
  if (common.json && !options.terminal) run_for_json(client->socket(), *request, options);
  if (!shell->empty()) {
    end(ending_of(run_in_shell(client->socket(), *request, options.interactive), program));
  }
  const auto fds = options.terminal ? std::vector<int>() : exec_fds(options.interactive);
  request->fd_numbers.assign(fds.begin(), fds.end());
  const auto wish = options.terminal ? TerminalWish::always : TerminalWish::as_passed;
  end(run_request(client->socket(), *request, fds, wish));
}

namespace {

/// What a persistent shell exports and where it is, for a shell that starts alike.
bool start_like(const Common& common, const ExecOptions& options, wire::ExecRequest& request) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) return complain(client.error().message(), 0), false;
  ExecOptions look = options;
  look.text = "command env -0";
  auto asked = request_for(look, *options.shell);
  if (!asked) return false;
  const auto seen = run_captured(client->socket(), *asked, false);
  if (seen.exited() == nullptr || seen.exited()->wait_status != 0) {
    const auto ending = ending_of(seen.outcome, asked->path);
    complain(
        ending.message.empty() ? asked->path + " does not tell its environment" : ending.message,
        0);
    return false;
  }
  for (std::size_t at = 0; at < seen.out.size();) {
    const std::size_t stop = std::min(seen.out.find('\0', at), seen.out.size());
    const std::string entry = seen.out.substr(at, stop - at);
    at = stop + 1;
    // Its own: the new shell has others.
    const bool is_own = entry.starts_with("_=") || entry.starts_with("SHLVL=");
    if (!is_own && entry.find('=') != std::string::npos) request.env.add(entry);
  }
  if (request.cwd.empty()) request.cwd = seen.exited()->shell.cwd;
  return true;
}

}  // namespace

int sh(const Common& common, const ExecOptions& options) {
  if (options.shell && options.shell->empty()) {
    return complain("--shell: expected a name, found an empty one", kUsage);
  }
  ExecOptions interactive = options;
  interactive.command = {"sh", "-c", kInteractiveShell};
  auto request = request_for(interactive, "");
  if (!request) return kUsage;
  if (options.shell && !start_like(common, options, *request)) return kRefused;
  auto client = Client::connect(common.runtime_dir);
  if (!client) return no_daemon(common, client.error());
  end(run_request(client->socket(), *request, {}, TerminalWish::always));
}

}  // namespace ctl
