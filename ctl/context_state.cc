// Environment, working folder and shells of a context: env, cd, pwd, shells, shell.

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/exec_client.h"
#include "ctl/print.h"
#include "ctl/shell.h"

namespace ctl {

using nlohmann::json;

namespace {

/// Runs a program of the context's own and gives what it printed; complains and gives nothing if it
/// fails.
std::optional<std::string> output_of(const Common& common, const std::string& context,
                                     const std::vector<std::string>& argv,
                                     const std::string& folder = {}) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) return complain(client.error().message(), 0), std::nullopt;
  auto request = make_request(argv, {});
  request.env = {};
  request.cwd = folder;
  request.policy.context = context;
  request.policy.env = wire::EnvMode::context;
  const auto captured = run_captured(client->socket(), request, false);
  if (captured.exited() != nullptr && captured.exited()->wait_status == 0) return captured.out;
  const auto ending = ending_of(captured.outcome, argv.front());
  std::string why = ending.message.empty() ? captured.err : ending.message;
  while (why.ends_with('\n')) why.pop_back();
  complain(why, 0);
  return {};
}

/// The shell `default` that we would use; null if there is none.
json default_shell(const Common& common, const std::string& context) {
  auto answer = ask(common, "shells", {{"context", context}});
  if (!answer) return nullptr;
  json only = nullptr;
  std::size_t count = 0;
  for (const auto& shell : (*answer)["shells"]) {
    if (shell.value("name", "") != "default") continue;
    if (shell.value("uid", 0u) == ::geteuid()) return shell;
    only = shell;
    ++count;
  }
  return count == 1 ? only : json(nullptr);
}

/// Where the next command of the context runs.
std::optional<std::string> current_folder(const Common& common, const std::string& context) {
  auto answer = ask(common, "ctx.inspect", {{"context", context}});
  if (!answer) return {};
  const auto& found = (*answer)["context"];
  if (found.value("persistent", true)) {
    const json shell = default_shell(common, context);
    const std::string folder = shell.is_object() ? shell.value("cwd", "") : "";
    if (!folder.empty()) return folder;
  }
  return found.value("cwd", "/");
}

bool change(const Common& common, const std::string& context, json changes) {
  return ask(common, "ctx.set", {{"context", context}, {"changes", std::move(changes)}})
      .has_value();
}

}  // namespace

int env_get(const Common& common, const std::string& context,
            const std::vector<std::string>& names) {
  auto answer = ask(common, "ctx.inspect", {{"context", context}});
  if (!answer) return 1;
  const auto wanted =
      names.empty() ? (*answer)["context"].value("envNames", std::vector<std::string>()) : names;
  const auto text = output_of(common, context, {"env", "-0"}, "/");
  if (!text) return 1;
  json found = json::object();
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t stop = std::min(text->find('\0', at), text->size());
    const std::string entry = text->substr(at, stop - at);
    at = stop + 1;
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals == std::string::npos || std::ranges::find(wanted, name) == wanted.end()) continue;
    found[name] = entry.substr(equals + 1);
  }
  if (common.json) return print_json(found), 0;
  // One name: its value alone, for scripts.
  for (const auto& [name, value] : found.items()) {
    std::cout << (names.size() == 1 ? "" : name + "=") << value.get<std::string>() << "\n";
  }
  return found.size() < names.size() ? 1 : 0;
}

int env_set(const Common& common, const std::string& context,
            const std::vector<std::string>& entries) {
  json env = json::object();
  for (const auto& entry : entries) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return complain("env set " + entry + ": expected NAME=value", kUsage);
    }
    env[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return change(common, context, {{"env", env}}) ? 0 : 1;
}

int env_unset(const Common& common, const std::string& context,
              const std::vector<std::string>& names) {
  json env = json::object();
  for (const auto& name : names) env[name] = nullptr;
  return change(common, context, {{"env", env}}) ? 0 : 1;
}

/// The context's own cd(1) says whether and where that folder is.
int change_folder(const Common& common, const std::string& context, const std::string& folder) {
  const auto from = folder.starts_with('/') ? "/" : current_folder(common, context);
  if (!from) return 1;
  auto text = output_of(common, context, {"sh", "-c", "cd -- \"$1\" && pwd", "sh", folder}, *from);
  if (!text) return 1;
  if (text->ends_with('\n')) text->pop_back();
  return change(common, context, {{"cwd", *text}}) ? 0 : 1;
}

int print_folder(const Common& common, const std::string& context) {
  const auto folder = current_folder(common, context);
  if (!folder) return 1;
  if (common.json) return print_json({{"cwd", *folder}}), 0;
  std::cout << *folder << "\n";
  return 0;
}

int shells(const Common& common, const std::string& context) {
  const auto names = context_names(common, context);
  if (!names) return 1;
  json all = json::array();
  std::vector<std::vector<std::string>> rows = {
      {"CONTEXT", "SHELL", "UID", "ENGINE", "PID", "JOB", "RUNNING", "WAITING", "CWD"}};
  for (const auto& name : *names) {
    auto answer = ask(common, "shells", {{"context", name}});
    if (!answer) return 1;
    for (auto& shell : (*answer)["shells"]) {
      const bool is_busy = !shell["job"].is_null();
      rows.push_back({name, text_of(shell, "name"), text_of(shell, "uid"), text_of(shell, "engine"),
                      text_of(shell, "pid"), is_busy ? text_of(shell, "job") : "-",
                      is_busy ? duration_text(shell.value("runningMs", std::uint64_t{0})) : "-",
                      text_of(shell, "waiting"), text_of(shell, "cwd")});
      shell["context"] = name;
      all.push_back(std::move(shell));
    }
  }
  if (common.json) return print_json(all), 0;
  print_table(rows);
  return 0;
}

int order_shell(const Common& common, const std::string& verb, const std::string& context,
                const std::string& shell) {
  auto answer = ask(common, "shell." + verb, {{"context", context}, {"shell", shell}});
  if (!answer) return 1;
  answer->erase("ok");
  if (common.json) print_json(*answer);
  const auto survivors = answer->value("survivors", 0);
  return survivors == 0 ? 0 : complain(std::to_string(survivors) + " processes are left", 1);
}

}  // namespace ctl
