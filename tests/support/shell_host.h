#pragma once

#include <optional>
#include <string>

#include "tests/support/child.h"
#include "tests/support/context_client.h"

namespace support {

/// airlock-shell without a context around it, and what routerd and requesters would say to it.
/// Everything throws std::runtime_error.
class ShellHost {
 public:
  /// What bash is given, in the folder of the programs unless with a '/'.
  struct Libraries {
    std::string loadable = "airlock-shell.so";
    std::string receiver = "airlock-shell-receiver.so";
  };

  /// `bash`: where the host looks for it.
  explicit ShellHost(const std::string& bash = "/bin/bash") : ShellHost(bash, Libraries()) {}
  ShellHost(const std::string& bash, const Libraries& libraries);

  struct Options {
    std::vector<std::string> env{};
    std::string cwd{};
    std::string standard_input{};
    /// In place of the pipes; borrowed.
    int input_fd = -1;
    int output_fd = -1;
    std::uint64_t time_limit_ms = 0;
    std::uint64_t kill_grace_ms = 2000;
    bool fail_if_busy = false;
    bool no_checkpoint = false;
  };
  /// A command that was handed over and has not been waited for.
  struct Pending {
    Job job;
    base::UniqueFd output;
    base::UniqueFd errors;
  };
  struct Result {
    std::optional<wire::Exited> exited;
    std::optional<wire::NotStarted> refused;
    std::string output;
    std::string errors;

    /// "exit 3", "signal 9" or "refused".
    std::string ending() const;
  };

  Pending start(const std::string& command, const Options& options);
  Pending start(const std::string& command) { return start(command, {}); }
  /// Waits for its answer, and takes what is in its pipes then: never for their end.
  static Result finish(Pending pending);
  Result run(const std::string& command, const Options& options) {
    return finish(start(command, options));
  }
  Result run(const std::string& command) { return run(command, {}); }

  template <class Message>
  void tell(const Message& message) {
    auto sent =
        wire::send_datagram(channel_.borrow(), wire::type_of<Message>(), wire::encode(message));
    if (!sent) throw std::runtime_error(sent.error().message());
  }
  wire::ShellState order(wire::ShellOrder::Action action);
  /// The host's pid.
  pid_t pid() const { return child_->pid(); }

 private:
  base::UniqueFd channel_;
  std::unique_ptr<Child> child_;
  std::uint64_t next_job_ = 16;
};

}  // namespace support
