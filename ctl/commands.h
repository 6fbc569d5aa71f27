#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ctl {

/// What every command knows.
struct Common {
  std::string runtime_dir;
  bool json = false;
};

struct RunOptions {
  std::string in = "platform";
  /// Empty: user, or where a running daemon routes.
  std::string route_to;
  std::string env_file;
  std::vector<std::string> user_env;
  std::vector<std::string> share;
  std::vector<std::string> hide;
  std::string tier;
  std::string require_tier;
  std::string enforce = "auto";
  std::string route_log;
  bool development = false;
  bool keep = false;
  std::vector<std::string> command;
};

struct ExecOptions {
  std::string context;
  std::vector<std::string> env;
  std::string cwd;
  std::string timeout;
  std::string grace;
  bool interactive = false;
  bool terminal = false;
  std::vector<std::string> command;
  /// A command text for a shell, in place of `command`.
  std::string text;
  /// Nothing: as the context has it.
  std::optional<std::string> shell;
  bool no_shell = false;
  bool no_checkpoint = false;
  /// queue (also if empty) or fail.
  std::string on_busy;
  /// After this time it goes on without us; empty: never.
  std::string yield_after;
};

struct DaemonOptions {
  std::string config;
  std::string tier;
  std::string require_tier;
  std::string log_file;
  std::string stop_grace;
  bool development = false;
  bool foreground = false;
};

struct ContextOptions {
  std::string name;
  std::vector<std::string> env;
  std::vector<std::string> unset;
  std::string cwd;
  std::string child_context;
  std::string isolation = "secure";
  std::string rootfs = "auto";
  std::string enforce = "auto";
  std::vector<std::string> limits;  ///< NAME=VALUE
  std::vector<std::string> share;
  std::vector<std::string> hide;
  bool not_persistent = false;
  /// Durations; "none" is for ever, empty says nothing.
  std::string ttl;
  std::string idle_timeout;
  std::optional<bool> api_socket;
};

struct LogOptions {
  std::string service;
  std::size_t lines = 0;  ///< 0: all that the daemon gives
  bool follow = false;
};

struct JobOptions {
  /// Or the id of an exec.
  std::string context;
  /// Number or "all"; empty: an exec, or the whole context by its scope.
  std::string job;
  std::string signal = "TERM";
  /// leader, group, exec or context; empty: as what is named has it.
  std::string scope;
  /// Time until SIGKILL for those that are left; empty: none.
  std::string kill_after;
};

struct ApiOptions {
  std::string method;
  std::string path;
  /// "@-" is standard input, "@FILE" a file.
  std::string body;
  std::vector<std::string> headers;
};

/// Each side is a path here, "CONTEXT:PATH", or "-".
struct CopyOptions {
  std::string from;
  std::string to;
  bool is_recursive = false;
};

/// One command for completion scripts: its words ("ctx create"), and what may follow them.
struct CompletionRow {
  std::string command;
  std::vector<std::string> commands;
  std::vector<std::string> options;
  /// Its first argument is the name of a context.
  bool takes_context = false;
};

// Each command returns its exit code; run and exec end this process as their program ended.
int run(const Common& common, const RunOptions& options);
int exec(const Common& common, const ExecOptions& options);
/// An interactive shell on a terminal of its own.
int sh(const Common& common, const ExecOptions& options);
int env_get(const Common& common, const std::string& context,
            const std::vector<std::string>& names);
int env_set(const Common& common, const std::string& context,
            const std::vector<std::string>& entries);
int env_unset(const Common& common, const std::string& context,
              const std::vector<std::string>& names);
int change_folder(const Common& common, const std::string& context, const std::string& folder);
int print_folder(const Common& common, const std::string& context);
/// Files into and out of a context.
int cp(const Common& common, const CopyOptions& options);
int shells(const Common& common, const std::string& context);
/// `verb`: interrupt or reset.
int order_shell(const Common& common, const std::string& verb, const std::string& context,
                const std::string& shell);
/// Prints a completion script; `tables` are what the options and commands are.
int completion(const std::string& shell, const std::vector<CompletionRow>& rows);
int up(const Common& common, const DaemonOptions& options);
int down(const Common& common);
int ctx_create(const Common& common, const ContextOptions& options);
int ctx_list(const Common& common);
int ctx_inspect(const Common& common, const std::string& name);
int ctx_set(const Common& common, const ContextOptions& options);
int ctx_remove(const Common& common, const std::string& name);
int ps(const Common& common, const std::string& context);
int kill_job(const Common& common, const JobOptions& options);
int routes(const Common& common, bool follow);
/// What happens, as the audit log has it, or routing decisions where there is none: JSON lines.
int events(const Common& common);
/// Waits for programs of the API's, or until nothing runs in contexts; ends as the last one did.
int wait_for(const Common& common, const std::vector<std::string>& words);
/// Output of a program of the API's, from its beginning.
int exec_logs(const Common& common, const std::string& exec, bool follow);
/// The same, and what is typed is its input.
int attach(const Common& common, const std::string& exec);
/// One request to the HTTP API; prints the answer's body.
int api(const Common& common, const ApiOptions& options);
/// `exec` by the API: what runs longer than ExecOptions::yield_after goes on.
int exec_yielding(const Common& common, const ExecOptions& options, const std::string& shell);
int route_explain(const Common& common, const std::string& context,
                  const std::vector<std::string>& command);
/// What this machine can isolate with, or with an agent's command line what happens to that agent.
int doctor(const Common& common, const std::vector<std::string>& agent);
int services(const Common& common);
int logs(const Common& common, const LogOptions& options);
int restart(const Common& common, const std::string& service);
int reload(const Common& common);
int info(const Common& common);
int version(const Common& common);
int audit_head(const Common& common);
/// Of `folder`, or of the running daemon's log, which then must have what the daemon wrote last.
int audit_verify(const Common& common, const std::string& folder, std::string head);
int config_check(const Common& common, const std::string& file);

/// Says "airlock: TEXT" on stderr and returns `code`.
int complain(const std::string& text, int code);

/// "500ms", "5", "5s", "2m" as ms; 0 if it is none of these.
std::uint64_t parse_duration(const std::string& text);

}  // namespace ctl
