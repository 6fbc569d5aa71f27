#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/event_format.h"
#include "api/http.h"
#include "api/problem.h"

namespace api {

/// An answer that is a stream of events. It ends with exactly one `exit` or `error`; a client that
/// sees neither knows that it was cut off.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  static std::shared_ptr<EventStream> start(boost::asio::io_context& io,
                                            const std::shared_ptr<Exchange>& exchange,
                                            EventFormat format);

  EventFormat format() const { return format_; }
  /// Nothing that was written waits for the client.
  bool is_ready() const { return !is_writing_ && waiting_.empty(); }
  /// Sends text of append_event(); when is_ready() again, the action of on_ready() is called.
  void write(std::string events);
  void on_ready(std::function<void()> action) { on_ready_ = std::move(action); }

  /// Queues one event. What a client lets pile up beyond kMostWaiting is left out, and said so.
  void send(std::string_view type, const nlohmann::json& fields);
  static constexpr std::size_t kMostWaiting = 1u << 20;

  /// The last event; what comes later is ignored.
  void end_with_exit(const nlohmann::json& result, std::string_view cursor);
  void end(const Problem& problem, std::string_view cursor);

  /// `action` is called once, when the client goes away before the end.
  void on_gone(std::function<void()> action) { on_gone_ = std::move(action); }
  /// Something that lives as long as the stream.
  void keep(std::shared_ptr<void> thing) { kept_ = std::move(thing); }

 private:
  EventStream(boost::asio::io_context& io, std::shared_ptr<BodyStream> body, EventFormat format,
              std::string request_id);
  void flush();
  void lose_client();
  void finish();
  void arm_ping();

  /// Until its end.
  std::shared_ptr<EventStream> self_;
  std::shared_ptr<BodyStream> body_;
  EventFormat format_;
  std::string request_id_;
  boost::asio::steady_timer ping_;
  std::string waiting_;
  std::uint64_t left_out_ = 0;
  bool is_writing_ = false;
  bool is_over_ = false;
  std::function<void()> on_ready_;
  std::function<void()> on_gone_;
  std::shared_ptr<void> kept_;
};

}  // namespace api
