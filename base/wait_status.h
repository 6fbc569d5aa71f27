#pragma once

#include <sys/wait.h>

#include <optional>

namespace base {

/// How a process ended or stopped, as wait(2) tells it. Exit code, termination signal and stop
/// signal are three different things; at most one is set.
class WaitStatus {
 public:
  constexpr WaitStatus() = default;
  constexpr explicit WaitStatus(int raw) : raw_(raw) {}
  static constexpr WaitStatus from_exit_code(int code) { return WaitStatus((code & 0xff) << 8); }
  static constexpr WaitStatus from_signal(int signal) { return WaitStatus(signal & 0x7f); }

  std::optional<int> exit_code() const {
    return WIFEXITED(raw_) ? std::optional<int>(WEXITSTATUS(raw_)) : std::nullopt;
  }
  std::optional<int> term_signal() const {
    return WIFSIGNALED(raw_) ? std::optional<int>(WTERMSIG(raw_)) : std::nullopt;
  }
  std::optional<int> stop_signal() const {
    return WIFSTOPPED(raw_) ? std::optional<int>(WSTOPSIG(raw_)) : std::nullopt;
  }
  bool is_continued() const { return WIFCONTINUED(raw_); }
  constexpr int raw() const { return raw_; }

 private:
  int raw_ = 0;
};

}  // namespace base
