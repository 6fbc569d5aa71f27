// Requests' bodies: read as a whole before the handler is called, or by the handler, in parts.

#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>

#include "api/connection.h"

namespace api {

namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t kLargestPart = 64u << 10;

}  // namespace

void Connection::expect_body() {
  const std::size_t limit =
      route_->reads_in_parts ? server_.limits().parted_body : server_.limits().body;
  if (head_->content_length() && *head_->content_length() > limit) {
    return refuse_early(problem("payload-too-large"));
  }
  if (route_->reads_in_parts) {
    parts_.emplace(std::move(*head_));
    parts_->body_limit(limit);
    return dispatch();
  }
  if (head_->is_done()) return dispatch();
  whole_.emplace(std::move(*head_));
  whole_->body_limit(limit);
  ask_for_body() ? read_whole_body() : stream_.close();
}

/// Tells a client that waits for being told (RFC 9110, 10.1.1) that its body is wanted. False: it
/// has gone.
bool Connection::ask_for_body() {
  const auto& head = whole_ ? whole_->get().base() : parts_->get().base();
  if (!beast::iequals(head[http::field::expect], "100-continue")) return true;
  // It is small and the first thing in the socket: it fits.
  Error error;
  http::write(stream_, http::response<http::empty_body>(http::status::continue_, 11), error);
  return !error;
}

std::optional<Problem> Connection::what_is_wrong(Error error) {
  if (error == http::error::body_limit) return problem("payload-too-large");
  if (error == beast::error::timeout) return problem("request-timeout");
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return problem("invalid-request", "the body is not as its header says");
  }
  return std::nullopt;
}

void Connection::read_whole_body() {
  stream_.expires_after(server_.limits().body_time);
  http::async_read(stream_, buffer_, *whole_,
                   [self = shared_from_this()](Error error, std::size_t) {
                     if (!error) {
                       self->request_.body = std::move(self->whole_->get().body());
                       return self->dispatch();
                     }
                     const auto wrong = self->what_is_wrong(error);
                     wrong ? self->refuse_early(*wrong) : self->stream_.close();
                   });
}

void Connection::read_part(std::function<void(Checked<std::string>)> got) {
  if (is_gone_) return;
  if (!parts_ || parts_->is_done()) {
    return boost::asio::post(stream_.get_executor(), [got = std::move(got)] { got({}); });
  }
  if (part_.empty()) {
    part_.resize(kLargestPart);
    buffer_.reserve(kLargestPart);  // Beast reads no more at once than there is room for
    if (!ask_for_body()) {
      return boost::asio::post(stream_.get_executor(),
                               [self = shared_from_this()] { self->lose(); });
    }
  }
  auto& body = parts_->get().body();
  body.data = part_.data();
  body.size = part_.size();
  body.more = true;
  is_reading_part_ = true;
  stream_.expires_after(server_.limits().body_time);
  http::async_read_some(stream_, buffer_, *parts_,
                        [self = shared_from_this(), got = std::move(got)](
                            Error error, std::size_t) { self->take_part(error, got); });
}

void Connection::take_part(Error error, const std::function<void(Checked<std::string>)>& then) {
  if (!std::exchange(is_reading_part_, false)) return;  // it was answered meanwhile
  if (error && error != http::error::need_buffer) {
    const auto wrong = what_is_wrong(error);
    return wrong ? then(tl::unexpected<Problem>(*wrong)) : lose();
  }
  stream_.expires_never();
  std::string bytes(part_.data(), part_.size() - parts_->get().body().size);
  if (parts_->is_done()) {
    part_ = {};
    buffer_.shrink_to_fit();
    keeps_alive_ = keeps_alive_then_;
    watch();
  }
  // Framing came, and no bytes of the body yet.
  if (bytes.empty() && !parts_->is_done()) return read_part(then);
  then(std::move(bytes));
}

}  // namespace api
