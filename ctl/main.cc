// airlock: the command line. Talks to airlock-routerd; runs no user code itself.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>

#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exec_client.h"
#include "ctl/first_process.h"

namespace {

using namespace ctl;

const std::vector<std::string> kEnforce = {"auto", "preload", "farm", "binfmt", "ptrace"};

/// All options, and what was chosen.
struct CommandLine {
  Common common;
  RunOptions run;
  ExecOptions exec;
  DaemonOptions daemon;
  ContextOptions context;
  JobOptions job;
  CopyOptions copy;
  LogOptions log;
  ApiOptions api;
  std::string name;
  std::string head;
  std::string caller = "platform";
  std::vector<std::string> words;
  bool follow = false;
  /// What follows the first `--`; it is not CLI11's to look at.
  std::vector<std::string> after_dashes;
  bool has_dashes = false;
  std::function<int()> chosen;
};

CLI::App* command(CLI::App& parent, CommandLine& line, const std::string& name,
                  const std::string& help, std::function<int()> action) {
  CLI::App* added = parent.add_subcommand(name, help);
  added->callback([&line, action = std::move(action)] { line.chosen = action; });
  return added;
}

/// The first word that is no option of ours, or what follows `--`, begins somebody else's command
/// line: nothing of it is read as an option.
void take_command(CLI::App& parser, CommandLine& line, std::vector<std::string>& words,
                  const std::string& what, const std::string* text = nullptr) {
  parser.add_option("--runtime-dir", line.common.runtime_dir, "of the daemon");
  parser.fallthrough(false);
  parser.prefix_command();
  parser.footer("Then: [--] " + what);
  parser.parse_complete_callback([&parser, &line, &words, what, text] {
    words = parser.remaining();
    if (!words.empty() && words.front().starts_with('-')) throw CLI::ExtrasError({words.front()});
    if (!words.empty() && line.has_dashes) words.emplace_back("--");
    words.insert(words.end(), line.after_dashes.begin(), line.after_dashes.end());
    const bool has_text = text != nullptr && parser.count("-c") > 0;
    if (has_text && !words.empty()) throw CLI::ExcludesError("-c", what);
    if (words.empty() && !has_text) throw CLI::RequiredError(what);
  });
}

void add_tiers(CLI::App& parser, std::string& tier, std::string& required) {
  const CLI::IsMember names({"namespaces", "userns", "uids", "landlock", "none"});
  parser.add_option("--tier", tier, "use this tier of isolation, not the strongest that works")
      ->check(names);
  parser
      .add_option("--require-tier", required,
                  "start with no weaker one than this (default: userns)")
      ->check(names);
}

void add_run(CLI::App& app, CommandLine& line) {
  auto* run = command(app, line, "run", "Run an agent; what it starts runs in the user context",
                      [&line] { return ctl::run(line.common, line.run); });
  run->add_option("--in", line.run.in, "context of the agent")->capture_default_str();
  run->add_option("--route-to", line.run.route_to, "context of its children (default: user)");
  run->add_option("--env-file", line.run.env_file, "NAME=value lines for the user context");
  run->add_option("--user-env", line.run.user_env, "NAME=value for the user context")
      ->allow_extra_args(false);
  run->add_option("--share", line.run.share, "path below HOME that the user context sees too")
      ->allow_extra_args(false);
  run->add_option("--hide", line.run.hide, "folder that is empty in the user context")
      ->allow_extra_args(false);
  add_tiers(*run, line.run.tier, line.run.require_tier);
  run->add_option("--enforce", line.run.enforce, "what keeps children from running unrouted")
      ->check(CLI::IsMember(kEnforce))
      ->capture_default_str();
  run->add_option("--route-log", line.run.route_log,
                  "write what ran where to this file (JSON lines)");
  run->add_flag("--development", line.run.development, "go on without isolation, with a warning");
  run->add_flag("--keep", line.run.keep, "leave the contexts running afterwards");
  take_command(*run, line, line.run.command, "AGENT [ARGS]");

  auto* exec = command(app, line, "exec", "Run a program in a context",
                       [&line] { return ctl::exec(line.common, line.exec); });
  exec->add_option("CONTEXT", line.exec.context)->required();
  exec->add_option("-e,--env", line.exec.env, "NAME=value")->allow_extra_args(false);
  exec->add_option("-w,--cwd", line.exec.cwd, "working directory in the context");
  exec->add_option("--timeout", line.exec.timeout, "e.g. 500ms, 5s, 2m; then exit code 124");
  exec->add_option("--grace", line.exec.grace, "after that, from SIGTERM to SIGKILL (default: 2s)");
  exec->add_option("--yield", line.exec.yield_after,
                   "after this time print what there is and the exec's id; it goes on");
  exec->add_flag("-i,--interactive", line.exec.interactive, "pass standard input");
  exec->add_flag("-t,--tty", line.exec.terminal,
                 "a terminal of its own as standard input, output and error");
  exec->add_option("-c,--command", line.exec.text,
                   "run this text in a persistent shell of the context: what it sets stays");
  exec->add_option("--shell", line.exec.shell,
                   "name of that shell, made at first use (default: default)");
  exec->add_flag("--no-shell", line.exec.no_shell, "run the text in a shell of its own");
  exec->add_option("--on-busy", line.exec.on_busy, "if that shell is busy: queue (default) or fail")
      ->check(CLI::IsMember({"queue", "fail"}));
  exec->add_flag("--no-checkpoint", line.exec.no_checkpoint,
                 "faster; but if the text ends the shell, its state is lost");
  take_command(*exec, line, line.exec.command, "COMMAND [ARGS]", &line.exec.text);
}

void add_shells(CLI::App& app, CommandLine& line) {
  auto* sh = command(app, line, "sh", "An interactive shell in a context, on a terminal of its own",
                     [&line] { return ctl::sh(line.common, line.exec); });
  sh->add_option("CONTEXT", line.exec.context)->required();
  sh->add_option("--shell", line.exec.shell,
                 "with environment and folder of this persistent shell");
  sh->add_option("-e,--env", line.exec.env, "NAME=value")->allow_extra_args(false);
  sh->add_option("-w,--cwd", line.exec.cwd, "working directory in the context");
  auto* shells = command(app, line, "shells", "Persistent shells",
                         [&line] { return ctl::shells(line.common, line.name); });
  shells->add_option("CONTEXT", line.name);
  auto* shell = app.add_subcommand("shell", "One persistent shell")->require_subcommand(1);
  for (const auto& [verb, help] : {std::pair("interrupt", "Ctrl-C for what it runs"),
                                   std::pair("reset", "End it and all it has started")}) {
    auto* order = command(*shell, line, verb, help, [&line, verb = verb] {
      return order_shell(line.common, verb, line.name, line.exec.shell.value_or("default"));
    });
    order->add_option("CONTEXT", line.name)->required();
    order->add_option("--shell", line.exec.shell, "its name (default: default)");
  }
}

void add_state(CLI::App& app, CommandLine& line) {
  auto* env =
      app.add_subcommand("env", "What a context sets for its programs")->require_subcommand(1);
  env->add_option("CONTEXT", line.name)->required();
  const auto add = [&](const char* name, const char* help, const char* words, auto action) {
    auto* verb = command(*env, line, name, help,
                         [&line, action] { return action(line.common, line.name, line.words); });
    return verb->add_option(words, line.words);
  };
  add("get", "Show it, or the values of these", "NAME", env_get);
  add("set", "Set; persistent shells know it at their next command", "NAME=VALUE", env_set)
      ->required();
  add("unset", "Set no longer", "NAME", env_unset)->required();
  auto* cd = command(app, line, "cd", "Change where programs of a context start",
                     [&line] { return change_folder(line.common, line.name, line.words.front()); });
  cd->add_option("CONTEXT", line.name)->required();
  cd->add_option("DIR", line.words, "from there, if it is relative")->required()->expected(1);
  auto* copy = command(app, line, "cp", "Copy files into or out of a context",
                       [&line] { return cp(line.common, line.copy); });
  copy->add_option("FROM", line.copy.from, "a path here, CONTEXT:PATH, or - for standard input")
      ->required();
  copy->add_option("TO", line.copy.to, "the same; - for standard output")->required();
  copy->add_flag("-r,--recursive", line.copy.is_recursive, "folders, with all that is in them");
  auto* pwd = command(app, line, "pwd", "Where the next program of a context starts",
                      [&line] { return print_folder(line.common, line.name); });
  pwd->add_option("CONTEXT", line.name)->required();
}

/// Of `app` and all commands below it.
void collect_commands(const CLI::App& app, const std::string& name,
                      std::vector<CompletionRow>& rows) {
  CompletionRow row{.command = name, .commands = {}, .options = {}};
  for (const auto* option : app.get_options()) {
    row.takes_context |= option->get_name() == "CONTEXT";
    for (const auto& word : option->get_lnames()) row.options.push_back("--" + word);
    for (const auto& word : option->get_snames()) row.options.push_back("-" + word);
  }
  for (const auto* each : app.get_subcommands({})) row.commands.push_back(each->get_name());
  rows.push_back(std::move(row));
  for (const auto* each : app.get_subcommands({})) {
    collect_commands(*each, name.empty() ? each->get_name() : name + " " + each->get_name(), rows);
  }
}

void add_completion(CLI::App& app, CommandLine& line) {
  auto* script = command(app, line, "completion", "A completion script for your shell", [&] {
    std::vector<CompletionRow> rows;
    collect_commands(app, "", rows);
    return completion(line.name, rows);
  });
  script->add_option("SHELL", line.name, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void add_daemon(CLI::App& app, CommandLine& line) {
  auto* up = command(app, line, "up", "Start the daemon",
                     [&line] { return ctl::up(line.common, line.daemon); });
  up->add_option("--config", line.daemon.config, "configuration file");
  add_tiers(*up, line.daemon.tier, line.daemon.require_tier);
  up->add_option("--log-file", line.daemon.log_file, "default: airlock.log in the runtime folder");
  up->add_flag("--development", line.daemon.development, "go on without isolation, with a warning");
  up->add_option("--stop-grace", line.daemon.stop_grace,
                 "time that jobs have to end after a SIGTERM of the daemon, e.g. 5s (default: 8s)");
  up->add_flag("--foreground", line.daemon.foreground, "do not detach; log to stderr");
  command(app, line, "down", "Stop the daemon and everything in its contexts",
          [&line] { return ctl::down(line.common); });
  command(app, line, "info", "What the daemon is and does",
          [&line] { return ctl::info(line.common); });
  auto* doctor = command(
      app, line, "doctor", "What this machine can isolate with, and what is missing", [&line] {
        line.words.insert(line.words.end(), line.after_dashes.begin(), line.after_dashes.end());
        return ctl::doctor(line.common, line.words);
      });
  doctor
      ->add_option("--agent", line.words, "what would happen to this agent; its arguments after --")
      ->expected(1);
  auto* audit = app.add_subcommand("audit", "The audit log")->require_subcommand(1);
  auto* verify = command(*audit, line, "verify", "Check that nobody has changed it",
                         [&line] { return ctl::audit_verify(line.common, line.name, line.head); });
  verify->add_option("FOLDER", line.name, "default: the log of the running daemon");
  verify->add_option("--head", line.head, "what 'audit head' once said must be in it");
  command(*audit, line, "head", "The last record's number and hash, to be noted elsewhere",
          [&line] { return ctl::audit_head(line.common); });
  auto* config = app.add_subcommand("config", "The configuration file")->require_subcommand(1);
  auto* check = command(*config, line, "check", "Check a configuration file",
                        [&line] { return ctl::config_check(line.common, line.name); });
  check->add_option("FILE", line.name)->required();
}

void add_lifespans(CLI::App& parser, CommandLine& line) {
  parser.add_option("--ttl", line.context.ttl, "it ends after this time, e.g. 2h; none: never");
  parser.add_option("--idle-timeout", line.context.idle_timeout,
                    "it ends when nothing has run in it for this time; none: never");
}

void add_contexts(CLI::App& app, CommandLine& line) {
  auto* ctx = app.add_subcommand("ctx", "Execution contexts")->require_subcommand(1);
  auto* create = command(*ctx, line, "create", "Create a context",
                         [&line] { return ctx_create(line.common, line.context); });
  create->add_option("NAME", line.context.name)->required();
  create->add_option("-e,--env", line.context.env, "NAME=value")->allow_extra_args(false);
  create->add_option("-w,--cwd", line.context.cwd, "working directory");
  create->add_option("--child-context", line.context.child_context, "where its children run");
  create->add_option("--isolation", line.context.isolation, "secure, strict or none")
      ->check(CLI::IsMember({"secure", "strict", "none"}));
  create
      ->add_option("--rootfs", line.context.rootfs,
                   "overlay: what it changes in /usr, /etc, … is its own; or shared")
      ->check(CLI::IsMember({"auto", "overlay", "shared"}))
      ->capture_default_str();
  create->add_option("--enforce", line.context.enforce, "what keeps children from running unrouted")
      ->check(CLI::IsMember(kEnforce))
      ->capture_default_str();
  create->add_flag("--no-persistent", line.context.not_persistent,
                   "'exec -c' starts a shell of its own each time");
  add_lifespans(*create, line);
  create->add_flag("--api-socket,!--no-api-socket", line.context.api_socket,
                   "its programs reach the HTTP API (default: unless it has a child context)");
  create->add_option("--share", line.context.share, "path it sees too")->allow_extra_args(false);
  create
      ->add_option("--limit", line.context.limits,
                   "pids=N, memory=SIZE, cpu=CPUS, open_files=N, tmpfs=SIZE or exec_time=DURATION")
      ->allow_extra_args(false);
  create->add_option("--hide", line.context.hide, "folder it sees empty")->allow_extra_args(false);
  command(*ctx, line, "ls", "List contexts", [&line] { return ctx_list(line.common); });
  auto* inspect = command(*ctx, line, "inspect", "Show a context",
                          [&line] { return ctx_inspect(line.common, line.name); });
  inspect->add_option("NAME", line.name)->required();
  auto* set = command(*ctx, line, "set", "Change a context",
                      [&line] { return ctx_set(line.common, line.context); });
  set->add_option("NAME", line.context.name)->required();
  set->add_option("-e,--env", line.context.env, "NAME=value")->allow_extra_args(false);
  set->add_option("--unset", line.context.unset, "NAME")->allow_extra_args(false);
  set->add_option("-w,--cwd", line.context.cwd, "working directory");
  set->add_option("--child-context", line.context.child_context, "where its children run");
  add_lifespans(*set, line);
  auto* remove = command(*ctx, line, "rm", "End a context and everything in it",
                         [&line] { return ctx_remove(line.common, line.name); });
  remove->add_option("NAME", line.name)->required();
}

void add_jobs(CLI::App& app, CommandLine& line) {
  auto* ps = command(app, line, "ps", "Programs that run in contexts",
                     [&line] { return ctl::ps(line.common, line.name); });
  ps->add_option("CONTEXT", line.name);
  auto* kill = command(app, line, "kill", "Signal a job, an exec or a whole context",
                       [&line] { return kill_job(line.common, line.job); });
  kill->add_option("-s,--signal", line.job.signal, "name or number")->capture_default_str();
  kill->add_option("--scope", line.job.scope,
                   "the program, its process group (default), all it has started, its context")
      ->check(CLI::IsMember({"leader", "group", "exec", "context"}));
  kill->add_option("--kill-after", line.job.kill_after,
                   "SIGKILL for those that are left after this time, e.g. 5s");
  kill->add_option("CONTEXT", line.job.context, "or the id of an exec")->required();
  kill->add_option("JOB", line.job.job,
                   "number of 'airlock ps', or 'all'; not with --scope context");
  auto* wait = command(app, line, "wait", "Wait for execs to end, or contexts to be idle",
                       [&line] { return wait_for(line.common, line.words); });
  wait->add_option("CONTEXT", line.words, "ids of execs, or contexts")->required();
  auto* attached = command(app, line, "attach", "Output of an exec as it comes; Ctrl-] leaves it",
                           [&line] { return attach(line.common, line.name); });
  attached->add_option("EXEC", line.name)->required();
  auto* events = command(app, line, "events", "What happens, as it happens (JSON lines)",
                         [&line] { return ctl::events(line.common); });
  events->add_flag("-f,--follow", line.follow, "as always");
  auto* api = command(app, line, "api", "One request to the HTTP API, without a token",
                      [&line] { return ctl::api(line.common, line.api); });
  api->add_option("METHOD", line.api.method)->required();
  api->add_option("PATH", line.api.path, "as /api/v1/contexts")->required();
  api->add_option("-d,--data", line.api.body, "body; @FILE, @- for standard input");
  api->add_option("-H,--header", line.api.headers, "'Name: value'")->allow_extra_args(false);
  auto* routes = command(app, line, "routes", "What was routed where, and by which rule",
                         [&line] { return ctl::routes(line.common, line.follow); });
  routes->add_flag("-f,--follow", line.follow, "go on with what comes");
  auto* route = app.add_subcommand("route", "Routing")->require_subcommand(1);
  auto* explain = command(*route, line, "explain", "What would happen to a program, and why",
                          [&line] { return route_explain(line.common, line.caller, line.words); });
  explain->add_option("--in", line.caller, "context of the caller")->capture_default_str();
  take_command(*explain, line, line.words, "COMMAND [ARGS]");
}

void add_services(CLI::App& app, CommandLine& line) {
  command(app, line, "services", "Programs of the control plane, and their ports",
          [&line] { return ctl::services(line.common); });
  auto* logs = command(app, line, "logs", "What a service, or an exec, has written",
                       [&line] { return ctl::logs(line.common, line.log); });
  logs->add_option("SERVICE", line.log.service, "or the id of an exec")->required();
  logs->add_flag("-f,--follow", line.log.follow, "go on with what comes");
  logs->add_option("-n,--lines", line.log.lines, "only this many of the last lines");
  auto* restart = command(app, line, "restart", "Stop a service and start it again",
                          [&line] { return ctl::restart(line.common, line.name); });
  restart->add_option("SERVICE", line.name)->required();
  command(app, line, "reload", "Read services and ports from the configuration again",
          [&line] { return ctl::reload(line.common); });
}

/// CLI11 takes the words of a vector from its end.
std::vector<std::string> words_before_dashes(int argc, char** argv, CommandLine& line) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const bool takes_program = std::any_of(words.begin(), dashes, [](const std::string& word) {
    return word == "run" || word == "exec" || word == "explain" || word == "doctor";
  });
  line.has_dashes = dashes != words.end() && takes_program;
  if (line.has_dashes) {
    line.after_dashes.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run_command_line(int argc, char** argv) {
  CommandLine line;
  std::string output = "text";
  CLI::App app("airlock: execution contexts for AI agents inside one container");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--runtime-dir", line.common.runtime_dir,
                 "default: AIRLOCK_RUNTIME_DIR, /run/airlock");
  app.add_option("-o,--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "airlock: " + std::string(error.what()) + "; --help tells more\n";
  });
  add_run(app, line);
  add_daemon(app, line);
  add_contexts(app, line);
  add_jobs(app, line);
  add_services(app, line);
  add_shells(app, line);
  add_state(app, line);
  add_completion(app, line);
  command(app, line, "version", "Show the version", [&line] { return ctl::version(line.common); });
  try {
    app.parse(words_before_dashes(argc, argv, line));
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kUsage;
  }
  line.common.json = output == "json";
  if (line.common.runtime_dir.empty()) line.common.runtime_dir = default_runtime_dir();
  return as_first_process(line.chosen);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "airlock: %s\n", error.what());
    return kRefused;
  }
}
