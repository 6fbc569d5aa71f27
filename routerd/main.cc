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
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "contexts/capabilities.h"
#include "routerd/config.h"
#include "routerd/configured.h"
#include "routerd/daemon.h"
#include "routerd/version.h"

namespace {

constexpr int kUsage = 2;
constexpr int kCannotServe = 126;

struct Arguments {
  std::string config;
  std::string runtime_dir;
  std::string check_config;
  std::string tier;
  std::string log_file;
  int embedded_fd = -1;
  int ready_fd = -1;
  bool development = false;
  bool doctor = false;
  bool json = false;
};

// docs/SECURITY.md, "The daemon": no core, no tracer of the same user, nothing world-readable.
void harden() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
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

/// Tries every tier for real and says what came of it, as JSON for `airlock doctor`.
int doctor() {
  auto runtime = contexts::RuntimeDir::make_private();
  if (!runtime) return fail(runtime.error().message());
  nlohmann::json tiers = nlohmann::json::array();
  for (const auto tier : {contexts::Tier::namespaces, contexts::Tier::userns, contexts::Tier::uids,
                          contexts::Tier::landlock}) {
    auto probed = contexts::probe_one(tier, *runtime, programs_folder());
    tiers.push_back({{"tier", contexts::name_of(tier)},
                     {"works", probed.has_value()},
                     {"reason", probed ? "" : probed.error().message()}});
  }
  const nlohmann::json report = {
      {"tiers", tiers},
      {"capabilities", contexts::names_of(contexts::effective_capabilities())},
      {"uid", ::geteuid()}};
  std::cout << report.dump() << "\n";
  return 0;
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

int serve(const Arguments& arguments) {
  const bool is_embedded = arguments.embedded_fd >= 0;
  routerd::Config config = routerd::default_config();
  if (!arguments.config.empty()) {
    auto loaded = routerd::load_config(arguments.config);
    if (!loaded) {
      for (const auto& error : loaded.error()) std::cerr << error.render() << "\n";
      return kUsage;
    }
    config = std::move(*loaded);
    spdlog::set_level(routerd::spdlog_level(config.log_level));
  }
  auto runtime = is_embedded ? contexts::RuntimeDir::make_private()
                             : contexts::RuntimeDir::open(arguments.runtime_dir.empty()
                                                              ? config.runtime_dir
                                                              : arguments.runtime_dir);
  if (!runtime) return fail(runtime.error().message());
  if (!arguments.tier.empty() && !contexts::parse_tier(arguments.tier)) {
    std::cerr << "airlock: tier '" << arguments.tier
              << "': expected namespaces, userns, uids, landlock or none\n";
    return kUsage;
  }
  routerd::Daemon daemon(std::move(*runtime), {.programs = programs_folder(),
                                               .development = arguments.development,
                                               .is_embedded = is_embedded,
                                               .secrets = config.secrets,
                                               .tier = arguments.tier});
  if (auto chosen = daemon.choose_tier(); !chosen) return fail(chosen.error().message());
  if (const auto missing = routerd::missing_tier(config, daemon.tier());
      !missing.empty() && !arguments.development) {
    return fail(missing);
  }
  if (auto listening = daemon.listen(); !listening) return fail(listening.error().message());
  if (is_embedded) {
    daemon.adopt_client(base::UniqueFd(arguments.embedded_fd));
  } else {
    if (auto made = routerd::create_configured(daemon, config); !made) {
      return fail(made.error().message());
    }
    if (auto ready = announce(arguments); !ready) return fail(ready.error().message());
    spdlog::info("serving {} with tier {}", daemon.runtime().root(),
                 contexts::name_of(daemon.tier()));
  }
  daemon.run();
  return 0;
}

int run_command_line(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Airlock's daemon. Usually started by 'airlock up' or 'airlock run'.");
  app.set_version_flag("--version", std::string(routerd::kVersionString));
  app.add_option("--config", arguments.config, "configuration file (YAML)");
  app.add_option("--runtime-dir", arguments.runtime_dir, "folder of the sockets");
  app.add_option("--check-config", arguments.check_config, "check a configuration file and exit");
  app.add_option("--tier", arguments.tier, "use this tier instead of the strongest");
  app.add_option("--embedded", arguments.embedded_fd, "serve the client on this descriptor");
  app.add_option("--log-file", arguments.log_file, "append the log to this file once started");
  app.add_option("--ready-fd", arguments.ready_fd, "write a byte here once everything stands");
  app.add_flag("--development", arguments.development, "go on without isolation, with a warning");
  app.add_flag("--json", arguments.json, "with --check-config: as JSON");
  app.add_flag("--doctor", arguments.doctor, "try every tier, print JSON and exit");
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
  return arguments.doctor ? doctor() : serve(arguments);
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
