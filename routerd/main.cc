// airlock-routerd: owns the contexts and decides where programs run. Started by `airlock up`, by a
// service manager, or embedded by `airlock run`.

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "contexts/capabilities.h"
#include "contexts/probe.h"
#include "routerd/agent_report.h"
#include "routerd/audit/verify_command.h"
#include "routerd/config.h"
#include "routerd/configured.h"
#include "routerd/daemon.h"
#include "routerd/embed.h"
#include "routerd/enforcement.h"
#include "routerd/machine.h"
#include "routerd/tier_advice.h"
#include "routerd/version.h"

namespace {

constexpr int kUsage = 2;
constexpr int kCannotServe = 126;
/// Jobs had to be killed at the end: they were given time, and took more.
constexpr int kGraceOver = 124;

struct Arguments {
  std::string config;
  std::string runtime_dir;
  std::string check_config;
  std::string tier;
  std::string require_tier;
  std::string log_file;
  std::uint32_t stop_grace_ms = 8000;
  int embedded_fd = -1;
  int ready_fd = -1;
  bool development = false;
  bool doctor = false;
  std::string verify_audit;
  std::string audit_head;
  bool json = false;
  /// Of an agent, for the doctor.
  std::vector<std::string> agent;
};

// docs/SECURITY.md, "The daemon": no core, no tracer of the same user, nothing world-readable.
void harden() {
  // Only the soft limit: contexts inherit the hard one, and their programs may have any below it.
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  core.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &core);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

std::string programs_folder() {
  auto path = base::read_link("/proc/self/exe");
  return path ? path->substr(0, path->rfind('/')) : ".";
}

int fail(const std::string& message) {
  std::cerr << "airlock: " << message << "\n";
  return kCannotServe;
}

int check_config(const std::string& path, bool as_json) {
  auto config = routerd::load_config(path);
  if (as_json) {
    nlohmann::json errors = nlohmann::json::array();
    if (!config) {
      for (const auto& error : config.error()) errors.push_back(error.render());
    }
    std::cout << nlohmann::json{{"ok", config.has_value()}, {"errors", errors}}.dump(
                     2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
    return config ? 0 : kUsage;
  }
  if (config) {
    std::cout << path << ": ok, " << config->contexts.size() << " contexts\n";
    return 0;
  }
  for (const auto& error : config.error()) std::cerr << error.render() << "\n";
  return kUsage;
}

std::string working_folder() {
  std::error_code error;
  auto folder = std::filesystem::current_path(error);
  return error ? "/" : folder.string();
}

/// What would happen to an agent; null without one.
nlohmann::json report_on(const std::vector<std::string>& argv, const routerd::Offers& offers) {
  if (argv.empty()) return nullptr;
  const auto env = routerd::own_environment();
  const auto cwd = working_folder();
  auto profiles = routerd::Profiles::load(routerd::profile_folders(programs_folder()));
  if (!profiles) {
    nlohmann::json errors = nlohmann::json::array();
    for (const auto& error : profiles.error()) errors.push_back(error.render());
    return {{"errors", errors}};
  }
  auto program = routerd::inspect_program(argv.front(), routerd::variable(env, "PATH"), cwd);
  if (!program) return {{"errors", {program.error().message()}}};
  const auto agent = routerd::examine_agent(std::move(*program), argv, cwd, *profiles, env);
  const auto children = routerd::children_context({agent}, *profiles, cwd);
  return routerd::agent_report(agent, children, {}, offers);
}

/// What contexts may change of the platform's programs, and whether `rootfs: overlay` works.
nlohmann::json rootfs_report(contexts::Tier tier, const contexts::RuntimeDir& runtime) {
  using contexts::RuntimeDir;
  const auto overlay = contexts::probe_overlay(tier, runtime, programs_folder());
  const bool is_own = overlay.works && RuntimeDir::would_have_disk(RuntimeDir::default_root());
  return {
      {"default", "auto"},
      {"integrity",
       {{"run", routerd::integrity_of(tier, false)}, {"up", routerd::integrity_of(tier, is_own)}}},
      {"overlay", {{"works", overlay.works}, {"remark", overlay.remark}}}};
}

/// Tries every tier for real and says what came of it, as JSON for `airlock doctor`.
int doctor(const std::vector<std::string>& agent) {
  auto runtime = contexts::RuntimeDir::make_private();
  if (!runtime) return fail(runtime.error().message());
  nlohmann::json tiers = nlohmann::json::array();
  nlohmann::json limits = nlohmann::json::array();
  routerd::Offers offers;
  nlohmann::json rootfs;
  for (const auto tier : {contexts::Tier::namespaces, contexts::Tier::userns, contexts::Tier::uids,
                          contexts::Tier::landlock}) {
    auto probed = contexts::probe_one(tier, *runtime, programs_folder());
    tiers.push_back({{"tier", contexts::name_of(tier)},
                     {"works", probed.has_value()},
                     {"reason", probed ? "" : probed.error().message()},
                     {"lacks", routerd::weakness_of(tier)},
                     {"options", routerd::options_json(tier)}});
    if (probed && offers.empty()) {
      rootfs = rootfs_report(tier, *runtime);
      offers = routerd::probe_offers(tier, *runtime, programs_folder());
      for (const auto& limit : contexts::probe_limits(tier, *runtime, programs_folder())) {
        limits.push_back({{"limit", limit.name}, {"by", limit.by}, {"reason", limit.error}});
      }
    }
  }
  const nlohmann::json report = {
      {"tiers", tiers},
      {"machine", routerd::machine_facts()},
      {"enforcement", routerd::enforcement_json({}, offers)},
      {"limits", limits},
      {"rootfs", rootfs},
      {"capabilities", contexts::names_of(contexts::effective_capabilities())},
      {"agent", report_on(agent, offers)},
      {"uid", ::geteuid()}};
  std::cout << report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return 0;
}

contexts::Tier required_tier(const Arguments& arguments, const routerd::Config& config) {
  const auto asked = contexts::parse_tier(arguments.require_tier);
  return asked ? *asked : routerd::weakest_of(config.require_tier);
}

/// Tells `airlock up` that everything stands; from here on stderr is the log file.
base::Result<void> announce(const Arguments& arguments) {
  if (!arguments.log_file.empty()) {
    auto log = base::open_file(arguments.log_file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!log) return tl::unexpected<base::Error>(log.error());
    ::dup2(log->borrow(), STDERR_FILENO);
  }
  if (arguments.ready_fd < 0) return {};
  const base::UniqueFd ready(arguments.ready_fd);
  return base::write_all(ready.borrow(), "1");
}

/// That of the API's tokens.
std::vector<std::string> hidden_folders(const routerd::Config& config) {
  const auto& file = config.api.tokens_file;
  if (file.empty()) return {};
  return {file.substr(0, file.rfind('/'))};
}

/// The file's settings, or the default ones. Prints every mistake; nothing then.
std::optional<routerd::Config> settings_of(const Arguments& arguments) {
  if (arguments.config.empty()) return routerd::default_config();
  auto loaded = routerd::load_config(arguments.config);
  if (loaded) {
    spdlog::set_level(routerd::spdlog_level(loaded->log_level));
    return std::move(*loaded);
  }
  for (const auto& error : loaded.error()) std::cerr << error.render() << "\n";
  return {};
}

bool are_tiers(const Arguments& arguments) {
  for (const auto& tier : {arguments.tier, arguments.require_tier}) {
    if (tier.empty() || contexts::parse_tier(tier)) continue;
    std::cerr << "airlock: tier '" << tier
              << "': expected namespaces, userns, uids, landlock or none\n";
    return false;
  }
  return true;
}

base::Result<contexts::RuntimeDir> runtime_of(const Arguments& arguments,
                                              const routerd::Config& config) {
  if (arguments.embedded_fd >= 0) return contexts::RuntimeDir::make_private();
  return contexts::RuntimeDir::open(arguments.runtime_dir.empty() ? config.runtime_dir
                                                                  : arguments.runtime_dir);
}

/// Ports first: nobody may take one before it is held.
base::Result<void> open_doors(routerd::Daemon& daemon, const routerd::Config& config,
                              bool is_embedded) {
  if (!is_embedded) {
    if (auto held = routerd::hold_ports(daemon, config); !held) return held;
  }
  if (auto chosen = daemon.choose_tier(); !chosen) return chosen;
  if (auto opened = daemon.open_audit(); !opened) return opened;
  return daemon.listen();
}

base::Result<void> start_configured(routerd::Daemon& daemon, const routerd::Config& config,
                                    const Arguments& arguments) {
  if (auto made = routerd::create_configured(daemon, config); !made) return made;
  if (auto started = routerd::start_services(daemon, config, arguments.config); !started) {
    return started;
  }
  if (auto ready = announce(arguments); !ready) return ready;
  spdlog::info("serving {} with tier {}", daemon.runtime().root(),
               contexts::name_of(daemon.tier()));
  return {};
}

int serve(const Arguments& arguments) {
  const bool is_embedded = arguments.embedded_fd >= 0;
  const auto config = settings_of(arguments);
  if (!config || !are_tiers(arguments)) return kUsage;
  auto runtime = runtime_of(arguments, *config);
  if (!runtime) return fail(runtime.error().message());
  auto profiles = routerd::Profiles::load(routerd::profile_folders(programs_folder()));
  if (!profiles) {
    for (const auto& error : profiles.error()) std::cerr << error.render() << "\n";
    return fail("agent profiles with errors are not used, and nothing is started without them");
  }
  if (profiles->all().empty()) spdlog::warn("no agent profiles: no agent is recognised");
  routerd::Daemon daemon(std::move(*runtime),
                         {.programs = programs_folder(),
                          .development = arguments.development,
                          .required = required_tier(arguments, *config),
                          .is_embedded = is_embedded,
                          .secrets = config->secrets,
                          .profiles = std::move(*profiles),
                          .hide = hidden_folders(*config),
                          .tier = arguments.tier,
                          .stop_grace = arguments.stop_grace_ms * std::chrono::milliseconds(1),
                          .audit = config->audit,
                          .serves_api = config->api.is_wanted});
  if (auto open = open_doors(daemon, *config, is_embedded); !open) {
    return fail(open.error().message());
  }
  if (is_embedded) {
    daemon.adopt_client(base::UniqueFd(arguments.embedded_fd));
  } else if (auto started = start_configured(daemon, *config, arguments); !started) {
    return fail(started.error().message());
  }
  return daemon.run() ? 0 : kGraceOver;
}

int run_command_line(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Airlock's daemon. Usually started by 'airlock up' or 'airlock run'.");
  app.set_version_flag("--version", std::string(routerd::kVersionString));
  app.add_option("--config", arguments.config, "configuration file (YAML)");
  app.add_option("--runtime-dir", arguments.runtime_dir, "folder of the sockets");
  app.add_option("--check-config", arguments.check_config, "check a configuration file and exit");
  app.add_option("--tier", arguments.tier, "use this tier instead of the strongest");
  app.add_option("--require-tier", arguments.require_tier, "start with no weaker tier than this");
  app.add_option("--stop-grace-ms", arguments.stop_grace_ms, "time jobs have to end");
  app.add_option("--embedded", arguments.embedded_fd, "serve the client on this descriptor");
  app.add_option("--log-file", arguments.log_file, "append the log to this file once started");
  app.add_option("--ready-fd", arguments.ready_fd, "write a byte here once everything stands");
  app.add_flag("--development", arguments.development, "go on without isolation, with a warning");
  app.add_option("--verify-audit", arguments.verify_audit, "check an audit log's folder and exit");
  app.add_option("--audit-head", arguments.audit_head, "NUMBER:HASH that must be in it");
  app.add_flag("--json", arguments.json, "with --check-config: as JSON");
  app.add_flag("--doctor", arguments.doctor, "try every tier, print JSON and exit");
  app.add_option("agent", arguments.agent, "with --doctor: an agent's command line, after --");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  harden();
  auto logger = spdlog::stderr_logger_st("airlock");
  logger->set_pattern("airlock-routerd %Y-%m-%d %H:%M:%S.%e %l: %v");
  spdlog::set_default_logger(logger);
  spdlog::set_level(arguments.embedded_fd >= 0 ? spdlog::level::warn : spdlog::level::info);
  if (!arguments.check_config.empty()) {
    return check_config(arguments.check_config, arguments.json);
  }
  if (!arguments.verify_audit.empty()) {
    return routerd::audit::verify_command(arguments.verify_audit, arguments.audit_head,
                                          arguments.json);
  }
  return arguments.doctor ? doctor(arguments.agent) : serve(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "airlock: %s\n", error.what());
    return kCannotServe;
  }
}
