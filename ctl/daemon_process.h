#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ctl {

/// Path of airlock-routerd, beside this program.
std::string daemon_program();

/// What airlock-routerd with these arguments writes to stdout until it ends; its stderr is ours.
base::Result<std::string> daemon_output(const std::vector<std::string>& arguments);

/// The daemon that `airlock run` starts for itself: a child that ends with this process.
class EmbeddedDaemon {
 public:
  /// Starts it and returns at once; errors of its start come as the end of client().
  static base::Result<EmbeddedDaemon> start(const std::vector<std::string>& options);

  /// The socket it serves from its start. Given up to the caller, who ends the daemon by closing
  /// it.
  base::UniqueFd take_client() { return std::move(client_); }
  /// Waits for its end and removes what it could not remove if it was killed.
  void wait(const std::string& runtime_dir);

 private:
  EmbeddedDaemon(base::UniqueFd client, pid_t pid) : client_(std::move(client)), pid_(pid) {}

  base::UniqueFd client_;
  pid_t pid_;
};

/// Starts a daemon in the background and waits until it serves. An error without an operation: the
/// daemon has said on stderr why it did not start, and Error::code is its exit code. `log_file`
/// gets its output from the start on.
base::Result<pid_t> start_daemon(const std::vector<std::string>& options,
                                 const std::string& log_file);

}  // namespace ctl
