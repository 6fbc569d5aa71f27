#pragma once

#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>

#include "api/http.h"

namespace api {

/// What becomes of an HTTP connection whose request is answered by 101.
struct WebSocketOrder {
  boost::beast::tcp_stream stream;
  boost::beast::http::request<boost::beast::http::string_body> request;
  /// Of the answer; the subprotocol is among them.
  std::vector<std::pair<std::string, std::string>> headers;
  /// For what the client does not read.
  std::chrono::seconds write_time;
  /// Lives as long as the connection.
  std::shared_ptr<void> keeper;
};

/// Answers the request; `then` is called with the WebSocket, or never if the client has gone.
void open_web_socket(WebSocketOrder order,
                     const std::function<void(std::shared_ptr<MessageSocket>)>& then);

}  // namespace api
