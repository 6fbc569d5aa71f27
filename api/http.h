#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

// Requests and responses as the handlers know them: values, without the library that speaks HTTP.
namespace api {

class Place;
struct Token;
struct Problem;

struct Request {
  std::string method;
  /// Percent-decoded, without the query; always starts with '/'.
  std::string path;
  std::map<std::string, std::string> query;
  /// Values of `command`, the one field that may come more than once.
  std::vector<std::string> command;
  /// Names in lower case; of equal ones the first.
  std::map<std::string, std::string> headers;
  std::string body;
  /// Values of the {names} in the route's pattern.
  std::map<std::string, std::string> params;
  /// The address it came from, without the port.
  std::string client;
  /// Where it comes from; null in tests only.
  std::shared_ptr<Place> place;
  /// Who asks; null for routes without authentication.
  std::shared_ptr<const Token> token;
  std::string id;
  /// Of its route, as in openapi.json.
  std::string operation;

  /// "" if there is none.
  const std::string& header(const std::string& name) const;
  const std::string& query_value(const std::string& name) const;
  const std::string& param(const std::string& name) const;
  /// It asks for a WebSocket (RFC 6455, 4.1).
  bool is_upgrade = false;
};

struct Response {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  /// Bytes of the body, where it is not `body`: of a stream, or of what HEAD does not get.
  std::optional<std::uint64_t> length = std::nullopt;
  /// A stream of events: it lasts as long as what it tells of.
  bool is_stream = false;
};

/// Splits a request target into path and query and decodes both. False: not a path, a bad escape, a
/// NUL, more than kMaxQueryFields fields or kMaxQueryWords values of `command`.
bool read_target(std::string_view target, Request& request);
constexpr std::size_t kMaxQueryFields = 32;
constexpr std::size_t kMaxQueryWords = 1024;

/// Whether a client may choose this as its request's id: 1 to 128 of A-Z a-z 0-9 . _ : -
bool is_request_id(std::string_view text);

/// Whether this is a traceparent header of version 00 (W3C Trace Context).
bool is_traceparent(std::string_view text);

/// JSON as text; bytes that are not UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);

Response json_response(const nlohmann::json& value, unsigned status = 200);

/// A response's body while it is being made. Single-threaded; callbacks never come from inside a
/// call.
class BodyStream {
 public:
  BodyStream() = default;
  BodyStream(const BodyStream&) = delete;
  BodyStream& operator=(const BodyStream&) = delete;
  virtual ~BodyStream() = default;
  /// Sends `bytes`; `done` is called when the connection takes more, and never if it has gone. One
  /// write at a time.
  virtual void write(std::string bytes, std::function<void()> done) = 0;
  /// Ends the body; after the last write is done. One whose length was told must have it by now.
  virtual void end() = 0;
  /// Ends it so that the client sees that something is missing.
  virtual void cut() = 0;
};

/// A WebSocket, message by message. Single-threaded; callbacks never come from inside a call.
class MessageSocket {
 public:
  MessageSocket() = default;
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;
  virtual ~MessageSocket() = default;
  /// Calls `got` with the next binary message, or with nothing when there will be no more. One read
  /// at a time.
  virtual void read(std::function<void(std::optional<std::string>)> got) = 0;
  /// Sends `message`; `done` is called when the connection takes more, and never if it has gone.
  /// One write at a time.
  virtual void write(std::string message, std::function<void()> done) = 0;
  /// `action` is called once if the client goes away before close().
  virtual void on_gone(std::function<void()> action) = 0;
  /// Ends it, with a code of RFC 6455 or of docs/API.md; `reason` has at most 123 bytes.
  virtual void close(std::uint16_t code, const std::string& reason) = 0;
};

/// One request and its one answer: reply(), start() or upgrade(). An exchange that is dropped
/// without either is answered by 500.
class Exchange {
 public:
  explicit Exchange(Request request) : request_(std::move(request)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;
  const Request& request() const { return request_; }
  Request& request() { return request_; }
  virtual void reply(Response response) = 0;
  /// Reads on in the body of a request whose route `reads_in_parts`: calls `got` with the next
  /// bytes, with none at its end, or with the problem of a body that does not come as it should;
  /// never if the client has gone. Nothing is read, nor does a client that waits for "100 Continue"
  /// get it, unless asked for. One read at a time.
  virtual void read_part(std::function<void(tl::expected<std::string, Problem>)> got) = 0;
  /// Sends the head; the body follows, of the length it tells or in chunks.
  virtual std::shared_ptr<BodyStream> start(Response head) = 0;
  /// Answers a request that is_upgrade() by a WebSocket of this subprotocol; `then` is called with
  /// it, or never if the client has gone.
  virtual void upgrade(std::string subprotocol,
                       std::vector<std::pair<std::string, std::string>> headers,
                       const std::function<void(std::shared_ptr<MessageSocket>)>& then) = 0;
  /// `action` is called if the client goes away before the end of the answer.
  virtual void on_gone(std::function<void()> action) = 0;

 private:
  Request request_;
};

}  // namespace api
