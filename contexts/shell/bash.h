#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/wait_status.h"
#include "contexts/init/spawn.h"
#include "contexts/shell/engine.h"

namespace contexts::shell {

/// bash with the loadable builtin: the process and the socket to it. A checkpoint that takes over
/// is the same shell with another pid.
class Bash : public Engine {
 public:
  /// Starts `path` with the environment `env` in `folder`; it is ready when it reports kShellReady.
  static base::Result<std::unique_ptr<Bash>> start(const std::string& path,
                                                   const std::string& loadable,
                                                   const wire::StringList& env,
                                                   const std::string& folder);
  ~Bash() override;
  Bash(const Bash&) = delete;
  Bash& operator=(const Bash&) = delete;

  wire::ShellEngine kind() const override { return wire::ShellEngine::builtin; }
  int socket() const override { return socket_.borrow(); }
  int pid() const override { return pid_; }
  base::Result<void> send(const CommandText& text,
                          const std::vector<base::UniqueFd>& standard) override;
  base::Result<std::optional<Report>> receive() override;
  std::string complaint() const override { return read_complaints(complaints_.borrow()); }
  void taken_over_by(int pid) override { pid_ = pid; }
  void has_ended() override { pid_ = 0; }
  void kill() override;

 private:
  Bash(base::UniqueFd socket, base::UniqueFd complaints, std::unique_ptr<init::Launch> launch,
       int pid)
      : socket_(std::move(socket)),
        complaints_(std::move(complaints)),
        launch_(std::move(launch)),
        pid_(pid) {}

  base::UniqueFd socket_;
  base::UniqueFd complaints_;             ///< its stderr until it is ready
  std::unique_ptr<init::Launch> launch_;  ///< until it has exec'ed
  int pid_;
};

}  // namespace contexts::shell
