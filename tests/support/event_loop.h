#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stdexcept>

#include "tests/support/fds.h"

namespace support {

/// A daemon's event loop, run by a test as far as it needs.
class EventLoop {
 public:
  boost::asio::io_context& io() { return io_; }

  /// Runs until `done`, which may read what the loop has written. Throws after kDeadlineMs.
  template <class Done>
  void run_until(Done done) {
    using namespace std::chrono;
    const auto end = steady_clock::now() + milliseconds(kDeadlineMs);
    while (!done()) {
      io_.restart();
      io_.run_one_for(milliseconds(1));
      if (steady_clock::now() >= end) throw std::runtime_error("not in time");
    }
  }

  /// Runs what is ready.
  void poll() {
    io_.restart();
    io_.poll();
  }

 private:
  boost::asio::io_context io_;
};

}  // namespace support
