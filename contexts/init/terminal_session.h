#pragma once

#include <sys/resource.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/init/spawn.h"
#include "wire/message.h"

namespace contexts::init {

/// A program on a fresh terminal. The kernel stops a process group at terminal only if somebody
/// else of its session is the parent of one of them (setpgid(2), orphaned groups). So the session
/// is led by a *monitor*, a process of ours that is the program's parent, and tells us what
/// wait4(2) tells it.
class TerminalSession {
 public:
  /// What the monitor tells; one datagram each.
  struct Report {
    enum class Kind : int { started, changed, not_started };
    Kind kind = Kind::started;
    int pid = -1;
    int group = -1;
    /// As of wait4(2), for `changed`.
    int status = 0;
    rusage usage{};
    /// For not_started.
    SpawnStep step = SpawnStep::none;
    int error = 0;
  };

  /// Opens the terminal and starts the monitor, which starts the program. `fds` as for Launch.
  static base::Result<std::unique_ptr<TerminalSession>> start(wire::ExecRequest request,
                                                              std::vector<base::UniqueFd> fds,
                                                              AgentWall wall = {});

  int monitor() const { return monitor_; }
  /// Readable when there is a report. Borrowed.
  int channel() const { return channel_.borrow(); }
  /// Borrowed.
  int master() const { return master_.borrow(); }
  const wire::ExecRequest& request() const { return request_; }

  /// Nothing: no more for now. ECONNRESET: the monitor is gone.
  base::Result<std::optional<Report>> receive();
  /// Continues the program's group, in the terminal's foreground or background.
  void resume(bool foreground) const;
  void resize(const wire::Winsize& size) const;
  /// Whether `group` is the terminal's foreground process group.
  bool has_foreground(int group) const;

 private:
  TerminalSession(wire::ExecRequest request, int monitor, base::UniqueFd master,
                  base::UniqueFd channel)
      : request_(std::move(request)),
        monitor_(monitor),
        master_(std::move(master)),
        channel_(std::move(channel)) {}

  wire::ExecRequest request_;
  int monitor_;
  base::UniqueFd master_;
  base::UniqueFd channel_;
};

}  // namespace contexts::init
