#include "api/idempotency.h"

namespace api {

Idempotency::Found Idempotency::begin(const std::string& name, const std::string& hash,
                                      std::int64_t now) {
  forget_old(now);
  const auto found = entries_.find(name);
  if (found != entries_.end()) {
    const Entry& entry = found->second;
    if (entry.hash != hash) return Found::other;
    if (entry.response) return Found::answered;
    return entry.exec.empty() ? Found::going_on : Found::exec;
  }
  if (entries_.size() >= kMost) return Found::too_many;
  entries_.emplace(name, Entry{hash, now, {}, {}});
  order_.push_back(name);
  return Found::nothing;
}

void Idempotency::keep_response(const std::string& name, Response response) {
  if (const auto found = entries_.find(name); found != entries_.end()) {
    found->second.response = std::move(response);
  }
}

void Idempotency::keep_exec(const std::string& name, const std::string& exec) {
  if (const auto found = entries_.find(name); found != entries_.end()) found->second.exec = exec;
}

void Idempotency::adopt(const std::string& name, const std::string& hash, const std::string& exec,
                        std::int64_t started) {
  if (name.empty() || entries_.size() >= kMost) return;
  if (entries_.emplace(name, Entry{hash, started, exec, {}}).second) order_.push_back(name);
}

void Idempotency::drop(const std::string& name) {
  if (entries_.erase(name) > 0) std::erase(order_, name);
}

// The oldest that is not going on makes room.
void Idempotency::forget_old(std::int64_t now) {
  std::size_t passed = 0;
  while (passed < order_.size()) {
    const auto at = order_.begin() + static_cast<std::ptrdiff_t>(passed);
    const Entry& entry = entries_.at(*at);
    const bool is_old = entry.began + kLongestMs < now;
    if (!is_old && entries_.size() < kMost) return;
    if (entry.is_going_on()) {
      ++passed;
      continue;
    }
    entries_.erase(*at);
    order_.erase(at);
  }
}

}  // namespace api
