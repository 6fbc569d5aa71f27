#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "api/daemon_client.h"

namespace api {

/// Who was not let in, for the daemon's audit log. The first of a second is told at once, what
/// follows together when it is over: nobody can fill the log by asking often.
class Refusals {
 public:
  Refusals(boost::asio::io_context& io, DaemonClient& daemon) : daemon_(daemon), timer_(io) {}

  struct Refusal {
    std::string code;       ///< of the problem
    std::string client;     ///< its address
    std::string token;      ///< its name; empty: no valid one
    std::string operation;  ///< empty: there is no such
    auto operator<=>(const Refusal&) const = default;
  };
  void add(Refusal refusal);
  /// Different ones in a second; of more, only the number is told.
  static constexpr std::size_t kMost = 32;

 private:
  void tell(const Refusal& refusal, std::uint64_t times);
  void flush();

  DaemonClient& daemon_;
  boost::asio::steady_timer timer_;
  std::map<Refusal, std::uint64_t> waiting_;
  bool is_waiting_ = false;
};

}  // namespace api
