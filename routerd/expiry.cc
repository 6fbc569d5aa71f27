#include "routerd/expiry.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace routerd {

using nlohmann::json;
using Milliseconds = Expiry::Milliseconds;

namespace {

constexpr Milliseconds kLongestStep{5000};
constexpr Milliseconds kShortestStep{20};

base::Result<void> take(json& body, const char* name, std::uint64_t& target) {
  const auto found = body.find(name);
  if (found == body.end()) return {};
  const json value = *found;
  body.erase(found);
  if (value.is_null()) {
    target = 0;
    return {};
  }
  if (!value.is_number_unsigned() || value == 0u || value > Lifespan::kLongest) {
    return base::failure(name, EINVAL, "expected milliseconds from 1 to a year, or null");
  }
  target = value.get<std::uint64_t>();
  return {};
}

std::optional<Milliseconds> left(std::uint64_t limit_ms, Expiry::Time since, Expiry::Time now) {
  if (limit_ms == 0) return std::nullopt;
  const auto end = since + Milliseconds(limit_ms);
  return std::max(Milliseconds(0), std::chrono::ceil<Milliseconds>(end - now));
}

}  // namespace

base::Result<void> take_lifespan(json& body, Lifespan& lifespan) {
  if (auto taken = take(body, "ttlMs", lifespan.ttl_ms); !taken) return taken;
  return take(body, "idleTimeoutMs", lifespan.idle_timeout_ms);
}

void Expiry::set(const Lifespan& lifespan, Time now) {
  if (lifespan.ttl_ms != lifespan_.ttl_ms) set_at_ = now;
  if (lifespan.idle_timeout_ms != lifespan_.idle_timeout_ms) used_at_ = now;
  lifespan_ = lifespan;
}

std::optional<Milliseconds> Expiry::ttl_left(Time now) const {
  return left(lifespan_.ttl_ms, set_at_, now);
}

std::optional<Milliseconds> Expiry::idle_left(Time now) const {
  return left(lifespan_.idle_timeout_ms, used_at_, now);
}

const char* Expiry::reason_to_end(Time now) const {
  if (ttl_left(now) == Milliseconds(0)) return "ttl";
  return idle_left(now) == Milliseconds(0) ? "idle" : nullptr;
}

std::optional<Milliseconds> Expiry::rest(Time now) const {
  auto rest = ttl_left(now);
  if (const auto idle = idle_left(now)) {
    const auto step =
        std::clamp(Milliseconds(lifespan_.idle_timeout_ms / 10), kShortestStep, kLongestStep);
    const auto look = std::min(*idle, step);
    rest = rest ? std::min(*rest, look) : look;
  }
  return rest;
}

}  // namespace routerd
