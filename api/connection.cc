#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <optional>

#include "api/exec.h"
#include "api/routes.h"
#include "api/server.h"
#include "api/web_socket.h"

namespace api {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kLingerTime{5};
constexpr std::size_t kMostDiscarded = 64u << 20;
constexpr std::size_t kDiscardedAtOnce = 64u << 10;

/// All of a buffer by as few writes as the socket lets: Asio's own condition offers it 64 KiB at a
/// time.
std::size_t write_whole(error_code error, std::size_t) { return error ? 0 : std::size_t{1} << 30; }

class Connection;

/// The exchange of a connection.
class HttpExchange : public Exchange {
 public:
  HttpExchange(std::shared_ptr<Connection> connection, Request request, std::string operation)
      : Exchange(std::move(request)),
        connection_(std::move(connection)),
        watched_(connection_),
        operation_(std::move(operation)) {}
  ~HttpExchange() override;
  void reply(Response response) override;
  std::shared_ptr<BodyStream> start(Response head) override;
  void upgrade(std::string subprotocol, std::vector<std::pair<std::string, std::string>> headers,
               const std::function<void(std::shared_ptr<MessageSocket>)>& then) override;
  void on_gone(std::function<void()> action) override;

 private:
  /// Until it is answered.
  std::shared_ptr<Connection> connection_;
  std::weak_ptr<Connection> watched_;
  std::string operation_;
};

/// One TCP connection: request after request, each answered before the next is read.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, tcp::socket socket, std::string address)
      : server_(server), stream_(std::move(socket)), address_(std::move(address)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { server_.forget(address_); }

  void read_head() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_.limits().header));
    parser_->body_limit(server_.limits().body);
    is_gone_ = false;
    stream_.expires_after(is_first_ ? server_.limits().header_time : server_.limits().idle_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->take_head(error); });
  }

  // ---- for the exchange ----

  void reply(Response response, const std::string& operation) {
    ++server_.app().counters.requests[{operation, response.status}];
    stop_watching();
    auto message = std::make_shared<http::response<http::string_body>>(
        static_cast<http::status>(response.status), version_);
    set_fields(*message, response);
    const bool has_body = response.status != 204;
    if (is_head_) {
      if (has_body) message->content_length(response.body.size());
    } else {
      message->body() = std::move(response.body);
      if (has_body) message->prepare_payload();
    }
    stream_.expires_after(server_.limits().write_time);
    http::async_write(stream_, *message,
                      [self = shared_from_this(), message](error_code error, std::size_t) {
                        self->finish(error);
                      });
  }

  std::shared_ptr<BodyStream> start(const Response& head, const std::string& operation);

  void on_gone(std::function<void()> action) {
    if (is_gone_) {
      boost::asio::post(stream_.get_executor(), std::move(action));
    } else {
      on_gone_ = std::move(action);
    }
  }

  // Nothing is read or written here from now on; this object only counts the connection.
  void upgrade(std::vector<std::pair<std::string, std::string>> headers,
               const std::string& operation,
               const std::function<void(std::shared_ptr<MessageSocket>)>& then) {
    ++server_.app().counters.requests[{operation, 101}];
    stop_watching();
    for (const auto& header : own_fields()) headers.push_back(header);
    open_web_socket({std::move(stream_), parser_->release(), std::move(headers),
                     server_.limits().write_time, shared_from_this()},
                    then);
  }

  // ---- for the body ----

  void write_chunk(std::string bytes, std::function<void()> done) {
    auto kept = std::make_shared<std::string>(std::move(bytes));
    const auto written = [self = shared_from_this(), kept, done = std::move(done)](error_code error,
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

  void end_body() {
    stop_watching();
    if (!is_chunked_) return finish({});
    stream_.expires_after(server_.limits().write_time);
    boost::asio::async_write(
        stream_, http::make_chunk_last(),
        [self = shared_from_this()](error_code error, std::size_t) { self->finish(error); });
  }

 private:
  template <class Message>
  void set_fields(Message& message, const Response& response) {
    message.keep_alive(keeps_alive_);
    if (!response.type.empty()) message.set(http::field::content_type, response.type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    for (const auto& [name, value] : own_fields()) message.set(name, value);
  }

  std::vector<std::pair<std::string, std::string>> own_fields() const {
    auto fields = cors_headers(origin_, server_.app().rules);
    fields.emplace_back("X-Request-Id", request_id_);
    fields.emplace_back("X-Content-Type-Options", "nosniff");
    return fields;
  }

  void take_head(error_code error) {
    is_first_ = false;
    request_id_ = make_id("req_");
    origin_.clear();
    is_head_ = false;
    version_ = 11;
    keeps_alive_ = false;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return refuse_early(problem("headers-too-large"));
    }
    if (error == beast::error::timeout && !parser_->is_header_done() && parser_->got_some()) {
      return refuse_early(problem("request-timeout"));
    }
    if (error.category() == make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      const bool is_large = error == http::error::body_limit;
      return refuse_early(problem(is_large ? "payload-too-large" : "invalid-request",
                                  is_large ? "" : "this is not HTTP/1.1"));
    }
    if (error) return stream_.close();
    read_request_head();
  }

  void read_request_head() {
    const auto& head = parser_->get();
    version_ = head.version();
    keeps_alive_ = head.keep_alive();
    is_head_ = head.method() == http::verb::head;
    Request request;
    request.method = std::string(head.method_string());
    request.id = request_id_;
    request.client = address_;
    for (const auto& field : head) {
      std::string name(field.name_string());
      for (char& c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
      request.headers.emplace(std::move(name), std::string(field.value()));
    }
    origin_ = request.header("origin");
    // Who speaks before the answer has come does not speak WebSocket.
    request.is_upgrade =
        beast::websocket::is_upgrade(head) && parser_->is_done() && buffer_.size() == 0;
    // Until its body has been read, no further request can follow.
    const bool kept = std::exchange(keeps_alive_, keeps_alive_ && parser_->is_done());
    if (!read_target({head.target().data(), head.target().size()}, request)) {
      return refuse_early(problem("invalid-request", "the address is not valid"));
    }
    if (auto answer = preflight(request, server_.app().rules)) {
      return reply(std::move(*answer), "preflight");
    }
    if (auto wrong = admit(server_.app(), request, route_)) return refuse_early(*wrong);
    keeps_alive_ = kept;
    request_ = std::move(request);
    expect_body();
  }

  void expect_body() {
    if (parser_->is_done()) return dispatch();
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      auto go_on = std::make_shared<http::response<http::empty_body>>(http::status::continue_, 11);
      return http::async_write(stream_, *go_on,
                               [self = shared_from_this(), go_on](error_code error, std::size_t) {
                                 error ? self->stream_.close() : self->read_body();
                               });
    }
    read_body();
  }

  void read_body() {
    stream_.expires_after(server_.limits().body_time);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error) return self->dispatch();
                       self->keeps_alive_ = false;
                       if (error == http::error::body_limit) {
                         return self->refuse_early(problem("payload-too-large"));
                       }
                       if (error == beast::error::timeout) {
                         return self->refuse_early(problem("request-timeout"));
                       }
                       self->stream_.close();
                     });
  }

  void dispatch() {
    request_.body = std::move(parser_->get().body());
    stream_.expires_never();
    watch();
    route_->handler(server_.app(), std::make_shared<HttpExchange>(
                                       shared_from_this(), std::move(request_), route_->operation));
  }

  void refuse_early(const Problem& problem) { reply(to_response(problem, request_id_), "refused"); }

  void finish(error_code error) {
    on_gone_ = nullptr;
    if (error) return stream_.close();
    if (keeps_alive_) return read_head();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLingerTime);
    discard(kMostDiscarded);
  }

  // Lets the client read the answer: closing with unread data would reset the connection.
  void discard(std::size_t left) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kDiscardedAtOnce),
                            [self = shared_from_this(), left](error_code error, std::size_t got) {
                              if (error || got >= left) return self->stream_.close();
                              self->discard(left - got);
                            });
  }

  // ---- a client that goes away ----

  void watch() {
    is_watching_ = true;
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [weak = weak_from_this()](error_code error) {
                                  const auto self = weak.lock();
                                  if (!error && self && self->is_watching_) self->look();
                                });
  }

  // Bytes are the next request: it waits, and this one is watched no more.
  void look() {
    char byte = 0;
    const ssize_t got = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return watch();
    if (got <= 0) lose();
  }

  void stop_watching() {
    if (std::exchange(is_watching_, false)) stream_.cancel();
  }

  void lose() {
    if (std::exchange(is_gone_, true)) return;
    const auto self = shared_from_this();
    is_watching_ = false;
    stream_.close();
    if (const auto action = std::exchange(on_gone_, nullptr)) action();
  }

  Server& server_;
  beast::tcp_stream stream_;
  std::string address_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  const Route* route_ = nullptr;
  Request request_;
  std::string request_id_;
  std::string origin_;
  unsigned version_ = 11;
  bool is_first_ = true;
  bool is_head_ = false;
  bool keeps_alive_ = false;
  bool is_chunked_ = false;
  bool is_watching_ = false;
  bool is_gone_ = false;
  std::function<void()> on_gone_;
};

class HttpBody : public BodyStream {
 public:
  explicit HttpBody(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  void write(std::string bytes, std::function<void()> done) override {
    connection_->write_chunk(std::move(bytes), std::move(done));
  }
  void end() override { connection_->end_body(); }

 private:
  std::shared_ptr<Connection> connection_;
};

// The head goes out with the first write of the serializer; then only chunks follow.
std::shared_ptr<BodyStream> Connection::start(const Response& head, const std::string& operation) {
  ++server_.app().counters.requests[{operation, head.status}];
  is_chunked_ = version_ >= 11;
  if (!is_chunked_) keeps_alive_ = false;
  http::response<http::empty_body> message(static_cast<http::status>(head.status), version_);
  set_fields(message, head);
  if (is_chunked_) message.chunked(true);
  http::response_serializer<http::empty_body> serializer(message);
  // It is small and the first thing in the socket: it fits.
  error_code error;
  http::write_header(stream_, serializer, error);
  auto body = std::make_shared<HttpBody>(shared_from_this());
  if (error)
    boost::asio::post(stream_.get_executor(), [self = shared_from_this()] { self->lose(); });
  return body;
}

// A handler that lost its exchange: the client must not wait for ever.
HttpExchange::~HttpExchange() {
  if (!connection_) return;
  try {
    connection_->reply(to_response(problem("internal"), request().id), operation_);
  } catch (const std::exception& error) {
    spdlog::error("no answer to {}: {}", operation_, error.what());
  }
}

void HttpExchange::reply(Response response) {
  if (const auto connection = std::exchange(connection_, nullptr)) {
    connection->reply(std::move(response), operation_);
  }
}

std::shared_ptr<BodyStream> HttpExchange::start(Response head) {
  return std::exchange(connection_, nullptr)->start(head, operation_);
}

void HttpExchange::upgrade(std::string subprotocol,
                           std::vector<std::pair<std::string, std::string>> headers,
                           const std::function<void(std::shared_ptr<MessageSocket>)>& then) {
  headers.emplace_back("Sec-WebSocket-Protocol", std::move(subprotocol));
  std::exchange(connection_, nullptr)->upgrade(std::move(headers), operation_, then);
}

void HttpExchange::on_gone(std::function<void()> action) {
  if (const auto connection = watched_.lock()) connection->on_gone(std::move(action));
}

}  // namespace

void serve_connection(Server& server, tcp::socket socket, std::string address) {
  std::make_shared<Connection>(server, std::move(socket), std::move(address))->read_head();
}

}  // namespace api
