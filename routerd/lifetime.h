#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "routerd/expiry.h"

namespace routerd {

class Daemon;

/// Ends a context when its time is over. The daemon counts, not who asked for it: an API or a CLI
/// that is gone changes nothing. Single-threaded.
class Lifetime : public std::enable_shared_from_this<Lifetime> {
 public:
  /// Finds out whether anything runs; answers later, once.
  using Look = std::function<void(std::function<void(bool is_busy)>)>;
  /// `why` is "ttl" or "idle". Called from the event loop, by nothing of the context's.
  using End = std::function<void(const char* why)>;
  Lifetime(boost::asio::io_context& io, Look look, End end);

  void set(const Lifespan& lifespan);
  const Lifespan& lifespan() const { return expiry_.lifespan(); }
  /// A program of the context has been started.
  void use() { expiry_.use(Clock::now()); }

  /// {ttlMs, ttlRemainingMs, idleTimeoutMs, idleRemainingMs}, null where there is no end.
  nlohmann::json describe() const;

 private:
  using Clock = std::chrono::steady_clock;
  void arm();
  void look();
  void end_if_over();

  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  Look look_;
  End end_;
  Expiry expiry_;
  bool is_looking_ = false;
};

/// For the context `name` of `daemon`, which outlives it.
std::shared_ptr<Lifetime> make_lifetime(Daemon& daemon, const std::string& name);

}  // namespace routerd
