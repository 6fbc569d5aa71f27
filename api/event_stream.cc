#include "api/event_stream.h"

#include <nlohmann/json.hpp>

namespace api {
namespace {

constexpr std::chrono::seconds kPingPause{15};  // proxies cut idle connections, often after 60 s

}  // namespace

std::shared_ptr<EventStream> EventStream::start(boost::asio::io_context& io,
                                                const std::shared_ptr<Exchange>& exchange,
                                                EventFormat format) {
  Response head{
      200, media_type(format), "", {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}};
  head.is_stream = true;
  auto body = exchange->start(std::move(head));
  std::shared_ptr<EventStream> stream(
      new EventStream(io, std::move(body), format, exchange->request().id));
  exchange->on_gone([weak = std::weak_ptr(stream)] {
    if (const auto self = weak.lock()) self->lose_client();
  });
  stream->self_ = stream;
  stream->arm_ping();
  return stream;
}

EventStream::EventStream(boost::asio::io_context& io, std::shared_ptr<BodyStream> body,
                         EventFormat format, std::string request_id)
    : body_(std::move(body)), format_(format), request_id_(std::move(request_id)), ping_(io) {}

void EventStream::write(std::string events) {
  if (is_over_) return;
  waiting_.empty() ? void(waiting_ = std::move(events)) : void(waiting_ += events);
  if (!is_writing_) flush();
}

void EventStream::send(std::string_view type, const nlohmann::json& fields) {
  if (is_over_) return;
  if (waiting_.size() > kMostWaiting) {
    ++left_out_;
    return;
  }
  std::string events;
  if (left_out_ > 0) {
    append_event(events, format_, "notice",
                 to_text({{"reason", "skipped"}, {"events", std::exchange(left_out_, 0)}}), {});
  }
  append_event(events, format_, type, to_text(fields), {});
  write(std::move(events));
}

void EventStream::flush() {
  if (waiting_.empty()) {
    if (is_over_) {
      if (const auto body = std::exchange(body_, nullptr)) body->end();
      return finish();
    }
    if (on_ready_) on_ready_();
    return;
  }
  is_writing_ = true;
  body_->write(std::exchange(waiting_, {}), [self = shared_from_this()] {
    self->is_writing_ = false;
    self->flush();
  });
}

void EventStream::end_with_exit(const nlohmann::json& result, std::string_view cursor) {
  if (is_over_) return;
  append_event(waiting_, format_, "exit", to_text(result), cursor);
  is_over_ = true;
  ping_.cancel();
  if (!is_writing_) flush();
}

void EventStream::end(const Problem& problem, std::string_view cursor) {
  if (is_over_) return;
  append_event(waiting_, format_, "error", to_text(to_json(problem, request_id_)), cursor);
  is_over_ = true;
  ping_.cancel();
  if (!is_writing_) flush();
}

// What was being written will never be done.
void EventStream::lose_client() {
  const auto self = shared_from_this();
  is_writing_ = false;
  ping_.cancel();
  const auto action = std::exchange(on_gone_, nullptr);
  if (!std::exchange(is_over_, true) && action) action();
  finish();
}

// Whoever made the stream may hold it by these.
void EventStream::finish() {
  const auto self = shared_from_this();
  self_.reset();
  on_ready_ = nullptr;
  on_gone_ = nullptr;
  kept_.reset();
  if (!is_writing_) body_.reset();
}

void EventStream::arm_ping() {
  ping_.expires_after(kPingPause);
  ping_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self || self->is_over_) return;
    if (self->is_ready()) {
      std::string ping;
      append_ping(ping, self->format_);
      self->write(std::move(ping));
    }
    self->arm_ping();
  });
}

}  // namespace api
