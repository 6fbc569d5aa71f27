#pragma once

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
  bool interactive = false;
  std::vector<std::string> command;
};

struct DaemonOptions {
  std::string config;
  std::string tier;
  std::string log_file;
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
  std::vector<std::string> share;
  std::vector<std::string> hide;
};

struct JobOptions {
  std::string context;
  std::string job;
  std::string signal = "TERM";
};

// Each command returns its exit code; run and exec end this process as their program ended.
int run(const Common& common, const RunOptions& options);
int exec(const Common& common, const ExecOptions& options);
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
int route_explain(const Common& common, const std::string& context,
                  const std::vector<std::string>& command);
int doctor(const Common& common);
int info(const Common& common);
int version(const Common& common);
int config_check(const Common& common, const std::string& file);

/// Says "airlock: TEXT" on stderr and returns `code`.
int complain(const std::string& text, int code);

/// "500ms", "5", "5s", "2m" as ms; 0 if it is none of these.
std::uint64_t parse_duration(const std::string& text);

}  // namespace ctl
