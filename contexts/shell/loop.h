#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contexts/init/spawn.h"
#include "contexts/shell/engine.h"
#include "contexts/shell/loop_script.h"

namespace contexts::shell {

/// A plain bash that stays, for one that airlock's builtin does not fit. It reads scripts
/// (loop_script.h) from a socket, which programs it starts do not have; the descriptors of a
/// command come over another one to the receiver that is preloaded (bash/receiver.c), as they are.
/// It makes no checkpoints: what ends the shell ends its state.
class Loop : public Engine {
 public:
  /// Starts `path` with the environment `env` in `folder`; it is ready when it reports kShellReady.
  static base::Result<std::unique_ptr<Loop>> start(const std::string& path,
                                                   const std::string& receiver,
                                                   const std::vector<std::string>& env,
                                                   const std::string& folder);
  ~Loop() override;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  wire::ShellEngine kind() const override { return wire::ShellEngine::loop; }
  int socket() const override { return script_.borrow(); }
  int pid() const override { return pid_; }
  /// EINVAL: a name no shell variable can have; the shell is as it was.
  base::Result<void> send(const CommandText& text,
                          const std::vector<base::UniqueFd>& standard) override;
  base::Result<std::optional<Report>> receive() override;
  /// It has read all it was told and has said nothing: it executes nothing any more (set -n).
  bool is_deaf() const override;
  std::string complaint() const override;
  void has_ended() override { pid_ = 0; }
  void kill() override;

 private:
  enum class Phase { starting, idle, refusing, beginning, running };

  Loop() = default;
  base::Result<void> say(const std::string& script);
  base::Result<void> flush();
  base::Result<void> hear();
  std::optional<Report> take_report();
  std::optional<Report> begun(std::vector<std::string> fields);
  std::optional<Report> finished(std::vector<std::string> fields);
  std::string current_folder() const;
  ShellUsage take_usage();

  base::UniqueFd script_;
  base::UniqueFd channel_;
  base::UniqueFd complaints_;             ///< its stderr until it is ready
  std::unique_ptr<init::Launch> launch_;  ///< until it has exec'ed
  int pid_ = 0;
  Phase phase_ = Phase::starting;
  std::string nonce_;
  std::string unsent_;
  std::string heard_;
  LoopState state_;
  ShellReport refused_{};

  // Of the command that runs:
  CommandText text_;
  Begun begun_;
  std::string folder_before_;  ///< to go back to
  ShellUsage usage_before_{};
};

}  // namespace contexts::shell
