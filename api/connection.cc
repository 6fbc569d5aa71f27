// Requests' heads, and clients that go away.

#include "api/connection.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "api/exec.h"

namespace api {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;

void Connection::read_head() {
  whole_.reset();
  parts_.reset();
  head_.emplace();
  head_->header_limit(static_cast<std::uint32_t>(server_.limits().header));
  head_->body_limit(boost::none);  // which one counts, the route says
  is_gone_ = false;
  stream_.expires_after(is_first_ ? server_.limits().header_time : server_.limits().idle_time);
  http::async_read_header(
      stream_, buffer_, *head_,
      [self = shared_from_this()](Error error, std::size_t) { self->take_head(error); });
}

void Connection::take_head(Error error) {
  is_first_ = false;
  begun_ = std::chrono::steady_clock::now();
  route_ = nullptr;
  request_id_ = make_id("req_");
  origin_.clear();
  is_head_ = false;
  version_ = 11;
  keeps_alive_ = false;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return refuse_early(problem("headers-too-large"));
  }
  if (error == beast::error::timeout && !head_->is_header_done() && head_->got_some()) {
    return refuse_early(problem("request-timeout"));
  }
  if (error.category() == make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message) {
    return refuse_early(problem("invalid-request", "this is not HTTP/1.1"));
  }
  if (error) return stream_.close();
  read_request_head();
}

void Connection::read_request_head() {
  const auto& head = head_->get();
  version_ = head.version();
  keeps_alive_ = head.keep_alive();
  is_head_ = head.method() == http::verb::head;
  Request request;
  request.method = std::string(head.method_string());
  request.id = request_id_;
  request.client = address_;
  request.place = place_;
  for (const auto& field : head) {
    std::string name(field.name_string());
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    request.headers.emplace(std::move(name), std::string(field.value()));
  }
  if (is_request_id(request.header("x-request-id"))) {
    request.id = request_id_ = request.header("x-request-id");
  }
  origin_ = request.header("origin");
  // Who speaks before the answer has come does not speak WebSocket.
  request.is_upgrade =
      beast::websocket::is_upgrade(head) && head_->is_done() && buffer_.size() == 0;
  // Until its body has been read, no further request can follow.
  const bool kept = std::exchange(keeps_alive_, keeps_alive_ && head_->is_done());
  if (!read_target({head.target().data(), head.target().size()}, request)) {
    return refuse_early(problem("invalid-request", "the address is not valid"));
  }
  if (auto answer = preflight(request, server_.app().rules)) {
    return reply(std::move(*answer), "preflight");
  }
  if (auto wrong = admit(server_.app(), request, route_)) return refuse_early(*wrong);
  keeps_alive_then_ = kept;
  request_ = std::move(request);
  check_place(server_.app(), request_, *route_,
              [self = shared_from_this()](const std::optional<Problem>& wrong) {
                if (wrong) return self->refuse_early(*wrong);
                self->expect_body();
              });
}

void Connection::dispatch() {
  stream_.expires_never();
  // What comes while a body is read in parts is that body.
  if (!parts_ || parts_->is_done()) {
    keeps_alive_ = keeps_alive_then_;
    watch();
  }
  request_.operation = route_->operation;
  route_->handler(server_.app(),
                  make_exchange(shared_from_this(), std::move(request_), route_->operation));
}

void Connection::refuse_early(const Problem& problem) {
  reply(to_response(problem, request_id_), "refused");
}

void Connection::on_gone(std::function<void()> action) {
  if (is_gone_) {
    boost::asio::post(stream_.get_executor(), std::move(action));
  } else {
    on_gone_ = std::move(action);
  }
}

void Connection::watch() {
  is_watching_ = true;
  stream_.socket().async_wait(tcp::socket::wait_read, [weak = weak_from_this()](Error error) {
    const auto self = weak.lock();
    if (!error && self && self->is_watching_) self->look();
  });
}

// Bytes are the next request: it waits, and this one is watched no more.
void Connection::look() {
  char byte = 0;
  const ssize_t got = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return watch();
  if (got <= 0) lose();
}

void Connection::stop_watching() {
  const bool was_reading = std::exchange(is_reading_part_, false);
  if (std::exchange(is_watching_, false) || was_reading) stream_.cancel();
}

void Connection::lose() {
  if (std::exchange(is_gone_, true)) return;
  const auto self = shared_from_this();
  is_watching_ = false;
  stream_count_.reset();
  stream_.close();
  if (const auto action = std::exchange(on_gone_, nullptr)) action();
}

void serve_connection(Server& server, tcp::socket socket, std::string address,
                      std::shared_ptr<Place> place) {
  std::make_shared<Connection>(server, std::move(socket), std::move(address), std::move(place))
      ->read_head();
}

}  // namespace api
