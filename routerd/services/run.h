#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "routerd/frame_session.h"
#include "routerd/services/machine.h"
#include "wire/message.h"

namespace routerd::services {

/// Gives a request to the control context: the requester's connection, then its descriptors.
using Launcher = std::function<base::Result<void>(wire::ExecRequest, base::UniqueFd,
                                                  std::vector<base::UniqueFd>)>;

/// One run of a program of the control context; its requester is this daemon. Dropping the last
/// reference kills the program and its group.
class Run : public std::enable_shared_from_this<Run> {
 public:
  /// Called once, with how it ended; not from inside start().
  using OnEnd = std::function<void(const End&)>;

  static base::Result<std::shared_ptr<Run>> start(boost::asio::io_context& io,
                                                  const Launcher& launch, wire::ExecRequest request,
                                                  std::vector<base::UniqueFd> fds, OnEnd on_end);
  ~Run();

  /// To the process group.
  void signal(int number);
  /// In the control context; 0 before it has started.
  int pid() const { return pid_; }
  /// Not interested any more: kills it, and on_end is not called.
  void abandon();

 private:
  explicit Run(OnEnd on_end) : on_end_(std::move(on_end)) {}
  void take(const wire::Frame& frame);
  void end(const End& end);

  OnEnd on_end_;
  std::shared_ptr<FrameSession> session_;
  int pid_ = 0;
};

}  // namespace routerd::services
