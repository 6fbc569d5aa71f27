#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

#include "routerd/daemon.h"

namespace routerd {

/// The end of a daemon that gives its jobs time: each gets SIGTERM, then they are waited for. Not
/// those of the control context: services are stopped one by one, after it.
/// Destroying the object gives up.
class Drain {
 public:
  using Done = std::function<void(int jobs_left)>;

  /// `done` is called once, from the event loop: with 0 as soon as no job runs any more, else after
  /// `grace` with how many still do (-1: some context did not answer).
  Drain(Daemon& daemon, boost::asio::io_context& io, std::chrono::milliseconds grace, Done done);
  ~Drain();

 private:
  void ask();
  void take(std::size_t jobs);
  void finish(int jobs_left);

  Daemon& daemon_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer pause_;
  Done done_;
  /// Answers call back through this while the object lives.
  std::shared_ptr<Drain*> self_;
  std::size_t waiting_ = 0;
  std::size_t running_ = 0;
};

}  // namespace routerd
