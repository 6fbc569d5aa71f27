// airlock run: an agent in `platform`, its children in `user`.

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "base/exit_like.h"
#include "base/file.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/daemon_process.h"
#include "ctl/exec_client.h"

namespace ctl {
namespace {

using nlohmann::json;

/// KEY=VALUE lines; empty ones and those starting with # are skipped. "file:line: …" on errors.
base::Result<std::vector<std::string>> read_env_file(const std::string& path) {
  std::vector<std::string> entries;
  auto text = base::read_file(path, 1 << 20);
  if (!text) return tl::unexpected<base::Error>(text.error());
  std::size_t number = 0;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    std::string line = text->substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.starts_with("export ")) line.erase(0, 7);
    if (line.empty() || line.front() == '#') continue;
    if (line.find('=') == std::string::npos || line.front() == '=') {
      return base::failure(path + ":" + std::to_string(number), 0, "expected NAME=value");
    }
    entries.push_back(std::move(line));
  }
  return entries;
}

std::string current_folder() {
  std::error_code error;
  auto folder = std::filesystem::current_path(error);
  return error ? "/" : folder.string();
}

base::Result<json> embed_request(const RunOptions& options) {
  std::vector<std::string> user_env;
  if (!options.env_file.empty()) {
    auto entries = read_env_file(options.env_file);
    if (!entries) return tl::unexpected<base::Error>(entries.error());
    user_env = std::move(*entries);
  }
  for (const auto& entry : options.user_env) {
    if (entry.find('=') == std::string::npos || entry.front() == '=') {
      return base::failure("--user-env " + entry, 0, "expected NAME=value");
    }
    user_env.push_back(entry);
  }
  return json{
      {"in", options.in},         {"routeTo", options.route_to.empty() ? "user" : options.route_to},
      {"userEnv", user_env},      {"share", options.share},
      {"hide", options.hide},     {"enforce", options.enforce},
      {"agent", options.command}, {"cwd", current_folder()}};
}

void write_route_log(Client& client, const std::string& path) {
  auto answer = client.ask("routes");
  if (!answer) return;
  std::ofstream file(path);
  for (const auto& record : (*answer)["routes"]) {
    file << record.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
  }
  if (!file) complain("cannot write the route log " + path, 0);
}

Ending run_in(const std::string& runtime_dir, const RunOptions& options,
              const std::vector<int>& fds) {
  auto connection = Client::connect(runtime_dir);
  if (!connection) {
    return {base::WaitStatus::from_exit_code(kRefused).raw(), connection.error().message()};
  }
  auto request = make_request(options.command, fds);
  request.policy.context = options.in;
  request.policy.launch = true;
  request.policy.env = wire::EnvMode::exact;
  return run_request(connection->socket(), request, fds);
}

[[noreturn]] void end(const Ending& ending) {
  if (!ending.message.empty()) complain(ending.message, 0);
  base::exit_like(base::WaitStatus(ending.wait_status));
}

int run_embedded(const RunOptions& options, const std::vector<int>& fds) {
  auto request = embed_request(options);
  if (!request) return complain(request.error().message(), kUsage);
  std::vector<std::string> daemon_options;
  if (options.development) daemon_options.push_back("--development");
  if (!options.tier.empty()) daemon_options.insert(daemon_options.end(), {"--tier", options.tier});
  if (!options.require_tier.empty()) {
    daemon_options.insert(daemon_options.end(), {"--require-tier", options.require_tier});
  }
  auto daemon = EmbeddedDaemon::start(daemon_options);
  if (!daemon) return complain(daemon.error().message(), kRefused);
  std::string runtime_dir;
  Ending ending;
  {
    Client client(daemon->take_client());
    auto info = client.ask("embed", std::move(*request));
    if (!info) {
      // An end without an answer: the daemon has said why on stderr.
      if (info.error().code != ECONNRESET) complain(info.error().message(), 0);
      ending.wait_status = base::WaitStatus::from_exit_code(kRefused).raw();
    } else {
      runtime_dir = info->value("runtimeDir", "");
      ending = run_in(runtime_dir, options, fds);
      if (!options.route_log.empty()) write_route_log(client, options.route_log);
      if (options.keep && client.ask("keep")) {
        complain("kept: AIRLOCK_RUNTIME_DIR=" + runtime_dir + "; 'airlock down' ends it", 0);
        end(ending);
      }
    }
  }
  daemon->wait(runtime_dir);
  end(ending);
}

/// What only an own daemon can do is refused, not dropped, where another one serves already.
std::string needs_own_daemon(const RunOptions& options) {
  if (!options.user_env.empty()) return "--user-env";
  if (!options.env_file.empty()) return "--env-file";
  if (!options.share.empty()) return "--share";
  if (!options.hide.empty()) return "--hide";
  if (!options.require_tier.empty()) return "--require-tier";
  if (!options.tier.empty()) return "--tier";
  return options.enforce == "auto" ? "" : "--enforce";
}

}  // namespace

int run(const Common& common, const RunOptions& options) {
  const auto fds = base::open_fds();
  auto served = Client::connect(common.runtime_dir);
  if (!served) {
    const int code = served.error().code;
    if (code == ENOENT || code == ECONNREFUSED || code == ENOTDIR) {
      return run_embedded(options, fds);
    }
    return complain(served.error().message(), kRefused);
  }
  if (const auto option = needs_own_daemon(options); !option.empty()) {
    return complain("a daemon serves " + common.runtime_dir + ", and " + option +
                        " would change contexts that others use: use 'airlock ctx set', or point "
                        "AIRLOCK_RUNTIME_DIR to a folder nobody serves",
                    kUsage);
  }
  if (!options.route_to.empty()) {
    auto context = served->ask("ctx.inspect", {{"context", options.in}});
    if (!context) return complain(context.error().message(), kRefused);
    const std::string actual = (*context)["context"].value("childContext", "");
    if (actual != options.route_to) {
      return complain("context '" + options.in + "' routes to '" + actual + "', not to '" +
                          options.route_to + "'; 'airlock ctx set' changes that for all its agents",
                      kUsage);
    }
  }
  end(run_in(common.runtime_dir, options, fds));
}

}  // namespace ctl
