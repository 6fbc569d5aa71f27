#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "base/wait_status.h"

namespace support {

/// A fork of the test that runs a function; killed and reaped with this object. No Catch2 macros in
/// there: it reports by its exit code or through a pipe.
class Child {
 public:
  /// `body` returns the exit code; an exception is printed and gives 99.
  explicit Child(const std::function<int()>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void kill(int signal) const;
  /// Waits for its end. Throws after kDeadlineMs.
  base::WaitStatus wait();
  /// Waits until a signal has stopped it. Throws if it ends in place of that.
  base::WaitStatus wait_stopped();

 private:
  pid_t pid_ = -1;
  base::UniqueFd pidfd_;
};

/// Runs `body` in a fork and returns the text it returns there, or what it threw.
std::string text_of_child(const std::function<std::string()>& body);

/// The same as uid and gid `id` without groups and capabilities, as a program that this user
/// started would be: dumpable, so that it owns its /proc files. Needs root.
std::string text_of_child_as(unsigned id, const std::function<std::string()>& body);

}  // namespace support
