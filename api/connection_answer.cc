// Answers.

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "api/connection.h"
#include "api/web_socket.h"

namespace api {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kLingerTime{5};
constexpr std::size_t kMostDiscarded = 64u << 20;
constexpr std::size_t kDiscardedAtOnce = 64u << 10;

/// All of a buffer by as few writes as the socket lets: Asio's own condition offers it 64 KiB at a
/// time.
std::size_t write_whole(const boost::system::error_code& error, std::size_t) {
  return error ? 0 : std::size_t{1} << 30;
}

}  // namespace

template <class Message>
void Connection::set_fields(Message& message, const Response& response) {
  message.keep_alive(keeps_alive_);
  if (!response.type.empty()) message.set(http::field::content_type, response.type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  for (const auto& [name, value] : own_fields()) message.set(name, value);
}

std::vector<std::pair<std::string, std::string>> Connection::own_fields() const {
  auto fields = cors_headers(origin_, server_.app().rules);
  fields.emplace_back("X-Request-Id", request_id_);
  fields.emplace_back("X-Content-Type-Options", "nosniff");
  return fields;
}

void Connection::count(const std::string& operation, unsigned status) {
  ++server_.app().counters.requests[{operation, status}];
}

void Connection::count_time(unsigned status) {
  const bool is_head = is_head_ && route_ != nullptr;
  const Latencies::Kind kind = {is_head ? "HEAD" : (route_ != nullptr ? route_->method : "other"),
                                route_ != nullptr ? route_->pattern : "other", status / 100};
  server_.app().counters.latencies.add(kind, std::chrono::steady_clock::now() - begun_);
}

void Connection::reply(Response response, const std::string& operation) {
  count(operation, response.status);
  count_time(response.status);
  stop_watching();
  auto message = std::make_shared<http::response<http::string_body>>(
      static_cast<http::status>(response.status), version_);
  set_fields(*message, response);
  const bool has_body = response.status != 204 && response.status != 304;
  if (is_head_) {
    if (has_body) message->content_length(response.length.value_or(response.body.size()));
  } else {
    message->body() = std::move(response.body);
    if (has_body) message->prepare_payload();
  }
  stream_.expires_after(server_.limits().write_time);
  http::async_write(
      stream_, *message,
      [self = shared_from_this(), message](Error error, std::size_t) { self->finish(error); });
}

// The head goes out with the first write of the serializer; then only the body follows.
std::shared_ptr<BodyStream> Connection::start(const Response& head, const std::string& operation) {
  count(operation, head.status);
  head.is_stream ? void(stream_count_.emplace(server_.app().counters.events))
                 : count_time(head.status);
  is_chunked_ = version_ >= 11 && !head.length;
  if (!is_chunked_ && !head.length) keeps_alive_ = false;
  http::response<http::empty_body> message(static_cast<http::status>(head.status), version_);
  set_fields(message, head);
  if (is_chunked_) message.chunked(true);
  if (head.length) message.content_length(*head.length);
  http::response_serializer<http::empty_body> serializer(message);
  // It is small and the first thing in the socket: it fits.
  Error error;
  http::write_header(stream_, serializer, error);
  if (error)
    boost::asio::post(stream_.get_executor(), [self = shared_from_this()] { self->lose(); });
  return make_body(shared_from_this());
}

// Nothing is read or written here from now on; this object only counts the connection.
void Connection::upgrade(std::vector<std::pair<std::string, std::string>> headers,
                         const std::string& operation,
                         const std::function<void(std::shared_ptr<MessageSocket>)>& then) {
  count(operation, 101);
  stream_count_.emplace(server_.app().counters.web_sockets);
  stop_watching();
  for (const auto& header : own_fields()) headers.push_back(header);
  http::request<http::string_body> request(std::move(head_->get().base()));
  open_web_socket({std::move(stream_), std::move(request), std::move(headers),
                   server_.limits().write_time, shared_from_this()},
                  then);
}

void Connection::write_chunk(std::string bytes, std::function<void()> done) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  const auto written = [self = shared_from_this(), kept, done = std::move(done)](Error error,
                                                                                 std::size_t) {
    if (error) return self->lose();
    if (done && !self->is_gone_) done();
  };
  stream_.expires_after(server_.limits().write_time);
  if (is_chunked_) {
    boost::asio::async_write(stream_, http::make_chunk(boost::asio::buffer(*kept)), write_whole,
                             written);
  } else {
    boost::asio::async_write(stream_, boost::asio::buffer(*kept), write_whole, written);
  }
}

void Connection::end_body() {
  stop_watching();
  if (!is_chunked_) return finish({});
  stream_.expires_after(server_.limits().write_time);
  boost::asio::async_write(
      stream_, http::make_chunk_last(),
      [self = shared_from_this()](Error error, std::size_t) { self->finish(error); });
}

void Connection::cut_body() {
  on_gone_ = nullptr;
  lose();
}

void Connection::finish(Error error) {
  on_gone_ = nullptr;
  stream_count_.reset();
  if (error) return stream_.close();
  if (keeps_alive_) return read_head();
  Error ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kLingerTime);
  discard(kMostDiscarded);
}

// Lets the client read the answer: closing with unread data would reset the connection.
void Connection::discard(std::size_t left) {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kDiscardedAtOnce),
                          [self = shared_from_this(), left](Error error, std::size_t got) {
                            if (error || got >= left) return self->stream_.close();
                            self->discard(left - got);
                          });
}

}  // namespace api
