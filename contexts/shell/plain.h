#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "contexts/init/spawn.h"
#include "contexts/shell/engine.h"

namespace contexts::shell {

/// No shell that stays: `sh -c` for each command, in the context's environment and folder. For
/// where bash is missing, or is none that the builtin fits.
class PlainShell : public Engine {
 public:
  PlainShell(std::vector<std::string> env, std::string folder);
  ~PlainShell() override;
  PlainShell(const PlainShell&) = delete;
  PlainShell& operator=(const PlainShell&) = delete;

  wire::ShellEngine kind() const override { return wire::ShellEngine::command; }
  int socket() const override { return wake_.borrow(); }
  int pid() const override { return pid_; }
  base::Result<void> send(const CommandText& text,
                          const std::vector<base::UniqueFd>& standard) override;
  base::Result<std::optional<Report>> receive() override;
  bool ends_with_command() const override { return true; }
  std::string folder() const override { return folder_; }
  std::optional<wire::NotStarted> refusal() const override;
  void has_ended() override { pid_ = 0; }
  void kill() override;

 private:
  void report(ShellReportKind kind);
  wire::ExecRequest request_of(const CommandText& text) const;

  std::vector<std::string> env_;
  std::string folder_;
  base::UniqueFd wake_;  ///< eventfd: there are reports
  std::deque<Report> reports_;
  std::unique_ptr<init::Launch> launch_;
  int pid_ = 0;
};

}  // namespace contexts::shell
