#include "api/refusals.h"

namespace api {

void Refusals::add(Refusal refusal) {
  if (!is_waiting_) {
    tell(refusal, 1);
    return flush();
  }
  if (waiting_.size() >= kMost && !waiting_.contains(refusal)) {
    refusal = {.code = "others", .client = {}, .token = {}, .operation = {}};
  }
  ++waiting_[std::move(refusal)];
}

void Refusals::tell(const Refusal& refusal, std::uint64_t times) {
  daemon_.ask("api.refused",
              {{"code", refusal.code},
               {"client", refusal.client},
               {"token", refusal.token},
               {"operation", refusal.operation},
               {"times", times}},
              [](const base::Result<nlohmann::json>&) {});
}

void Refusals::flush() {
  for (const auto& [refusal, times] : std::exchange(waiting_, {})) tell(refusal, times);
  is_waiting_ = true;
  timer_.expires_after(std::chrono::seconds(1));
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    is_waiting_ = false;
    if (!waiting_.empty()) flush();
  });
}

}  // namespace api
