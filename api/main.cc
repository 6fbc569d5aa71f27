// airlock-api: the HTTP API. A service of the control context: it gets its listening socket as
// sd_listen_fds(3) tells, asks the daemon at AIRLOCK_RUNTIME_DIR/control.sock, and has no rights of
// its own.

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/adoption.h"
#include "api/app.h"
#include "api/server.h"
#include "api/version.h"
#include "wire/process_state.h"

namespace {

constexpr int kFirstListenFd = 3;  // SD_LISTEN_FDS_START
constexpr int kCannotServe = 126;

int number_in(const char* name) {
  const char* text = std::getenv(name);
  int number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

/// The first socket that was passed; empty if none was.
base::UniqueFd passed_listener() {
  if (number_in("LISTEN_PID") != ::getpid() || number_in("LISTEN_FDS") < 1) return {};
  ::fcntl(kFirstListenFd, F_SETFD, FD_CLOEXEC);
  return base::UniqueFd(kFirstListenFd);
}

/// What programs start with, before this process changes its own.
wire::ProcessState state_of_programs() {
  wire::ProcessState state = wire::capture_process_state();
  state.blocked_signals = state.ignored_signals = state.pending_signals = 0;
  state.parent_death_signal = 0;
  state.no_new_privs = false;
  return state;
}

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Tokens and the like, now and whenever they change. A file with mistakes changes nothing.
void apply_settings(api::App& app, const nlohmann::json& settings) {
  auto tokens = api::Tokens::parse(settings.value("tokens", ""));
  if (tokens) {
    app.tokens = std::move(*tokens);
    spdlog::info("{} tokens", app.tokens.count());
  } else {
    spdlog::error("the tokens stay as they were: {}", tokens.error().message());
  }
  app.rules = {settings.value("hosts", std::vector<std::string>{}),
               settings.value("origins", std::vector<std::string>{})};
  app.requests.set(settings.value("requestsPerSecond", api::App::kUsualRate));
  app.is_audited = settings.value("isAudited", false);
}

int serve() {
  const char* runtime = std::getenv("AIRLOCK_RUNTIME_DIR");
  base::UniqueFd listener = passed_listener();
  if (runtime == nullptr || !listener) {
    spdlog::error("start me by 'api:' in the configuration of airlock: I need my socket passed");
    return kCannotServe;
  }
  const wire::ProcessState state = state_of_programs();
  raise_open_files();
  ::signal(SIGPIPE, SIG_IGN);
  boost::asio::io_context io{1};
  const auto stop = [&io] { io.stop(); };
  auto daemon = api::DaemonClient::connect(io, std::string(runtime) + "/control.sock", stop);
  if (!daemon) {
    spdlog::error("{}", daemon.error().message());
    return kCannotServe;
  }
  api::App app{.io = io, .daemon = std::move(*daemon)};
  app.refusals = std::make_unique<api::Refusals>(io, *app.daemon);
  app.execs = std::make_unique<api::ExecTable>(
      api::ExecHost{io, *app.daemon, state, ::access("/bin/bash", X_OK) == 0 ? "bash" : "sh",
                    [&app](const api::ExecFacts& facts) {
                      ++app.counters.execs[api::status_of(facts)];
                      // It has not run: the same request may be tried again.
                      if (facts.not_started) app.idempotency.drop(facts.once_name);
                    }});
  app.terminals = std::make_unique<api::Terminals>(io, *app.execs);
  std::unique_ptr<api::Server> server;
  std::unique_ptr<api::FrameConnection> doors;
  // Nothing is served before it is known who may ask, and what an earlier process has left.
  const auto open_doors = [&] {
    auto opened = api::Server::listen(app, std::move(listener), {});
    if (!opened) {
      spdlog::error("{}", opened.error().message());
      return io.stop();
    }
    server = std::move(*opened);
    auto taken = app.daemon->take_connections(
        [&server](const std::string& context, base::UniqueFd connection) {
          server->take(context, std::move(connection));
        },
        stop);
    if (!taken) {
      spdlog::error("{}", taken.error().message());
      return io.stop();
    }
    doors = std::move(*taken);
  };
  bool has_settings = false;
  auto settings = app.daemon->follow(
      "api.settings", nlohmann::json::object(),
      [&](const nlohmann::json& news) {
        apply_settings(app, news);
        if (!std::exchange(has_settings, true)) api::adopt_kept_jobs(app, open_doors);
      },
      stop);
  if (!settings) {
    spdlog::error("{}", settings.error().message());
    return kCannotServe;
  }
  io.run();
  return 1;
}

}  // namespace

int main() {
  // Buffers of streams come and go: without this each takes its pages from the kernel and gives
  // them back.
  ::mallopt(M_MMAP_THRESHOLD, 2 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 4 << 20);
  try {
    auto logger = spdlog::stderr_logger_st("api");
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l: %v", spdlog::pattern_time_type::utc);
    spdlog::set_default_logger(logger);
    spdlog::info("airlock-api {}", api::kVersion);
    return serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "airlock-api: %s\n", error.what());
    return kCannotServe;
  }
}
