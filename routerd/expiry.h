#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.h"

namespace routerd {

/// How long a context may live, in ms; 0: for ever.
struct Lifespan {
  std::uint64_t ttl_ms = 0;           ///< after this was set
  std::uint64_t idle_timeout_ms = 0;  ///< after the last program of it ended
  static constexpr std::uint64_t kLongest = 365ull * 24 * 3600 * 1000;
  bool operator==(const Lifespan&) const = default;
};

/// Moves the fields ttlMs and idleTimeoutMs of `body` to `lifespan`; null is "for ever", a missing
/// one changes nothing. EINVAL: not from 1 to Lifespan::kLongest.
base::Result<void> take_lifespan(nlohmann::json& body, Lifespan& lifespan);

/// When a context's time is over. Pure: told what time it is.
class Expiry {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  explicit Expiry(Time now) : set_at_(now), used_at_(now) {}

  const Lifespan& lifespan() const { return lifespan_; }
  /// Counts anew what is different.
  void set(const Lifespan& lifespan, Time now);
  /// Something was started, or still runs.
  void use(Time now) { used_at_ = now; }

  /// "ttl" or "idle" if its time is over, as long as nothing runs for "idle"; else null.
  const char* reason_to_end(Time now) const;
  /// How long it has left; nothing: for ever. Never negative.
  std::optional<Milliseconds> ttl_left(Time now) const;
  std::optional<Milliseconds> idle_left(Time now) const;
  /// How long nothing has to be looked at; nothing: for ever. While an idle timeout counts, what
  /// runs is looked for in steps of a tenth of it, of 5 s at most.
  std::optional<Milliseconds> rest(Time now) const;

 private:
  Lifespan lifespan_;
  Time set_at_;
  Time used_at_;
};

}  // namespace routerd
