#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace ctl {

/// A pipe for a program to write to, and a thread that passes on what comes out of it.
class Capture {
 public:
  using Sink = std::function<void(std::string_view)>;

  explicit Capture(Sink sink);
  /// Passes on what is there. Never waits for the pipe's end: a job in the background may hold it.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// What the program gets; whoever takes it closes it.
  int take_write_end() { return write_end_.release(); }

 private:
  void copy(const Sink& sink);

  base::UniqueFd read_end_;
  base::UniqueFd write_end_;
  base::UniqueFd done_;
  std::thread thread_;
};

}  // namespace ctl
