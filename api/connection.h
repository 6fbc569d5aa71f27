#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/routes.h"
#include "api/server.h"

namespace api {

/// Counts a stream for as long as it is open.
class OpenStream {
 public:
  explicit OpenStream(Counters::Streams& streams) : streams_(streams) {
    ++streams_.begun;
    ++streams_.open;
  }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;
  ~OpenStream() { --streams_.open; }

 private:
  Counters::Streams& streams_;
};

/// One TCP connection: request after request, each answered before the next is read.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Error = boost::system::error_code;

  Connection(Server& server, boost::asio::ip::tcp::socket socket, std::string address,
             std::shared_ptr<Place> place)
      : server_(server),
        stream_(std::move(socket)),
        address_(std::move(address)),
        place_(std::move(place)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { server_.forget(address_, *place_); }

  void read_head();

  // ---- for the exchange ----

  void reply(Response response, const std::string& operation);
  std::shared_ptr<BodyStream> start(const Response& head, const std::string& operation);
  void upgrade(std::vector<std::pair<std::string, std::string>> headers,
               const std::string& operation,
               const std::function<void(std::shared_ptr<MessageSocket>)>& then);
  void on_gone(std::function<void()> action);
  /// Of a body that is read in parts, which is asked for by this; as Exchange::read_part().
  void read_part(std::function<void(Checked<std::string>)> got);

  // ---- for the answer's body ----

  void write_chunk(std::string bytes, std::function<void()> done);
  void end_body();
  /// Ends the connection, so that the client sees that the answer is not whole.
  void cut_body();

 private:
  // connection.cc
  void take_head(Error error);
  void read_request_head();
  void dispatch();
  void refuse_early(const Problem& problem);
  void watch();
  void look();
  void stop_watching();
  void lose();
  // connection_body.cc
  void expect_body();
  bool ask_for_body();
  void read_whole_body();
  void take_part(Error error, const std::function<void(Checked<std::string>)>& then);
  static std::optional<Problem> what_is_wrong(Error error);
  // connection_answer.cc
  template <class Message>
  void set_fields(Message& message, const Response& response);
  std::vector<std::pair<std::string, std::string>> own_fields() const;
  void count(const std::string& operation, unsigned status);
  void count_time(unsigned status);
  void finish(Error error);
  void discard(std::size_t left);

  Server& server_;
  boost::beast::tcp_stream stream_;
  std::string address_;
  std::shared_ptr<Place> place_;
  boost::beast::flat_buffer buffer_;
  /// Of the request's head; its body is read by one of the two others.
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> head_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> whole_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parts_;
  std::string part_;
  /// Null before it is known, and for requests that have none.
  const Route* route_ = nullptr;
  std::chrono::steady_clock::time_point begun_;
  std::optional<OpenStream> stream_count_;
  Request request_;
  std::string request_id_;
  std::string origin_;
  unsigned version_ = 11;
  bool is_first_ = true;
  bool is_head_ = false;
  bool keeps_alive_ = false;
  /// Once a body that is read in parts has been read.
  bool keeps_alive_then_ = false;
  bool is_chunked_ = false;
  bool is_watching_ = false;
  bool is_reading_part_ = false;
  bool is_gone_ = false;
  std::function<void()> on_gone_;
};

/// An answer for the connection, to `request`.
std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Connection> connection, Request request,
                                        std::string operation);
/// The body of an answer that the connection has begun.
std::shared_ptr<BodyStream> make_body(std::shared_ptr<Connection> connection);

}  // namespace api
