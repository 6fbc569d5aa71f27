#include "routerd/lifetime.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "routerd/control_jobs.h"
#include "routerd/daemon.h"

namespace routerd {

using nlohmann::json;

Lifetime::Lifetime(boost::asio::io_context& io, Look look, End end)
    : io_(io), timer_(io), look_(std::move(look)), end_(std::move(end)), expiry_(Clock::now()) {}

void Lifetime::set(const Lifespan& lifespan) {
  expiry_.set(lifespan, Clock::now());
  arm();
}

json Lifetime::describe() const {
  const auto now = Clock::now();
  const auto told = [](std::uint64_t limit) { return limit == 0 ? json() : json(limit); };
  const auto left = [](auto time) { return time ? json(time->count()) : json(); };
  return {{"ttlMs", told(lifespan().ttl_ms)},
          {"ttlRemainingMs", left(expiry_.ttl_left(now))},
          {"idleTimeoutMs", told(lifespan().idle_timeout_ms)},
          {"idleRemainingMs", left(expiry_.idle_left(now))}};
}

void Lifetime::arm() {
  timer_.cancel();
  const auto rest = expiry_.rest(Clock::now());
  if (!rest) return;
  timer_.expires_after(*rest);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->lifespan().idle_timeout_ms != 0 ? self->look() : self->end_if_over();
  });
}

// The end of a time to live is not kept waiting by one that does not answer.
void Lifetime::look() {
  if (std::exchange(is_looking_, true)) return end_if_over();
  look_([weak = weak_from_this()](bool is_busy) {
    const auto self = weak.lock();
    if (!self) return;
    self->is_looking_ = false;
    if (is_busy) self->use();
    self->end_if_over();
  });
}

// Posted: the answer may come in the middle of a callback of what is about to be destroyed.
void Lifetime::end_if_over() {
  const auto now = Clock::now();
  const bool is_unsure = is_looking_ && expiry_.ttl_left(now) != Expiry::Milliseconds(0);
  const char* why = is_unsure ? nullptr : expiry_.reason_to_end(now);
  if (why == nullptr) return is_unsure ? void() : arm();
  boost::asio::post(io_, [weak = weak_from_this(), why] {
    const auto self = weak.lock();
    if (!self) return;
    // Something may have been started meanwhile.
    self->expiry_.reason_to_end(Clock::now()) != nullptr ? self->end_(why) : self->arm();
  });
}

std::shared_ptr<Lifetime> make_lifetime(Daemon& daemon, const std::string& name) {
  // One that does not answer may be busy.
  const auto look = [&daemon, name](const std::function<void(bool)>& then) {
    HostedContext* hosted = daemon.find(name);
    if (hosted == nullptr) return then(true);
    runs_anything(daemon, *hosted, then);
  };
  const auto end = [&daemon, name](const char* why) {
    spdlog::info("context={} op=expire reason={}", name, why);
    if (auto* trail = daemon.trail()) trail->context_expired(name, why);
    (void)daemon.destroy(name);
  };
  return std::make_shared<Lifetime>(daemon.io(), look, end);
}

}  // namespace routerd
